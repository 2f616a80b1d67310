from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator

import pytest
from pydantic import BaseModel

from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.clock import SystemClock
from shoal.errors import BadScraper
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.runs.seeding import BATCH, REFUSALS_SHOWN, new_run_id, seed
from support.working import reader


def test_run_ids_are_readable_and_all_different() -> None:
    """Jobs of thousands of users begin in the same second, and one who knows an id sees what is in it."""
    ids = {new_run_id("books", SystemClock()) for _ in range(20_000)}
    assert len(ids) == 20_000
    assert all(re.fullmatch(r"books-\d{8}-\d{6}-[0-9a-f]{12}", run_id) for run_id in ids)


async def test_a_run_is_filled_and_sealed(engine: SqliteEngine) -> None:
    seeded = await seed(engine, reader(start=["http://x.example/", "http://x.example/#again", "htp://x"]), "run")
    assert (seeded.accepted, seeded.duplicates, seeded.refusals) == (1, 1, 1)
    assert seeded.refused == [("htp://x", "its scheme 'htp' is not http or https")]
    run = await engine.reader.run("run")
    assert (run.state, run.counters.waiting) == ("running", 1)


async def test_urls_that_are_given_stand_instead_of_the_start(engine: SqliteEngine) -> None:
    async def stream() -> AsyncIterator[str]:
        for number in range(5):
            yield f"http://x.example/{number}"

    seeded = await seed(engine, reader(start="http://other.example/"), "run", urls=stream())
    assert seeded.accepted == 5
    assert [site.site for site in await engine.reader.sites()] == ["x.example"]


async def test_more_than_a_batch_and_more_refusals_than_are_shown(engine: SqliteEngine) -> None:
    good = [f"http://x.example/{number}" for number in range(BATCH * 2 + 1)]
    seeded = await seed(engine, reader(), "run", urls=[*good, *(["nonsense"] * 50)])
    assert (seeded.accepted, seeded.refusals, len(seeded.refused)) == (len(good), 50, REFUSALS_SHOWN)


async def test_filling_that_was_interrupted_ends_with_the_same_tasks(engine: SqliteEngine) -> None:
    """Also for requests without deduplication: each place in the list counts once."""
    requests = [Request("http://x.example/same", dedup=False) for _ in range(BATCH + 500)]
    scraper = reader()
    broken = True

    @scraper.start
    def begin() -> Iterator[Request]:
        for number, request in enumerate(requests):
            if broken and number == BATCH + 100:
                raise RuntimeError("the power went off")
            yield request

    with pytest.raises(RuntimeError):
        await seed(engine, scraper, "run")
    half = await engine.reader.run("run")
    assert (half.state, half.counters.waiting) == ("open", BATCH)
    broken = False
    seeded = await seed(engine, scraper, "run")
    assert (seeded.accepted, seeded.duplicates) == (500, BATCH)
    assert (await engine.reader.run("run")).counters.waiting == len(requests)


async def test_a_run_that_was_filled_is_left_as_it_is(engine: SqliteEngine) -> None:
    await seed(engine, reader(start="http://x.example/1"), "run")
    seeded = await seed(engine, reader(start="http://x.example/2"), "run")
    assert (seeded.accepted, seeded.duplicates) == (0, 0)
    assert (await engine.reader.run("run")).counters.waiting == 1


async def test_a_wrong_input_makes_no_run(engine: SqliteEngine) -> None:
    class Cart(BaseModel):
        items: list[str]

    scraper = Scraper("cart", input=Cart)
    with pytest.raises(BadScraper, match="'items'"):
        await seed(engine, scraper, "run", input=b'{"items": 5}')
    assert await engine.reader.runs() == []


async def test_the_input_is_kept_with_the_run(engine: SqliteEngine) -> None:
    class Cart(BaseModel):
        items: list[str]

    scraper = Scraper("cart", input=Cart)

    @scraper.start
    def searches(cart: Cart) -> Iterator[Request]:
        for item in cart.items:
            yield Request(f"http://shop.example/?q={item}", group=item)

    @scraper.page
    def read(_page: object) -> None: ...

    given = b'{"items": ["milk", "eggs"]}'
    seeded = await seed(engine, scraper, "run", input=given, mode="distributed", queue="jobs")
    run = await engine.reader.run("run")
    assert (seeded.accepted, run.input, run.mode, run.queue) == (2, given, "distributed", "jobs")

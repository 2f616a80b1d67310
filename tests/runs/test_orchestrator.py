"""The Orchestrator as a program uses it, on every engine; and the command line, which goes the same way."""

from __future__ import annotations

import asyncio
import json
import shlex
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from shoal import AsyncOrchestrator, Orchestrator, Page, Request, Scraper
from shoal.errors import BadTarget, UnknownRun, UsageError
from shoal.testing.history import History
from support.command_line import script, shoal
from support.counting_site import PAGES, Site
from support.engine_urls import ENGINES, empty_store
from support.waiting import until

SCRAPER = """
from shoal import Page, Scraper

books = Scraper("books", start=["{url}/"], delay=0)

@books.page
def listing(page: Page):
    yield from page.follow("a", to="detail")

@books.page("detail")
def detail(page: Page):
    yield {{"n": int(page.text("h1"))}}
"""


@pytest.fixture
def site(counting_site: Site) -> Site:
    return counting_site


@pytest.fixture(autouse=True)
def folder(own_folder: Path) -> Path:
    return own_folder


@pytest.fixture(params=ENGINES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with empty_store(request.param, tmp_path) as url:
        yield url


def reader_of(start: str = "http://shop.example/", **options: object) -> Scraper:
    scraper = Scraper("books", start=[start], delay=0.0, **options)  # type: ignore[arg-type]  # options of the test

    @scraper.page
    def read(page: Page) -> Iterator[object]:
        yield {"n": int(page.text("h1") or "")}
        yield from page.follow("a")

    return scraper


def numbers(orchestrator: Orchestrator, run_id: str) -> list[int]:
    return sorted(item["n"] for item in orchestrator.items(run_id))


# What is done here and now


def test_single_works_until_done_and_answers_a_summary(site: Site, store: str) -> None:
    orchestrator = Orchestrator(reader_of(f"{site.url}/"), engine=store)
    answer = orchestrator.start("books")
    assert (answer.status, answer.enqueued, answer.run.completed) == ("finished", 1, PAGES + 1)
    assert (answer.run.items, answer.run.failed, answer.run.remaining) == (PAGES + 1, 0, 0)
    assert answer.run == orchestrator.stats(answer.run_id)
    assert answer.as_dict() == {"status": "finished", "enqueued": 1, **answer.run.as_dict()}
    assert (answer.worker_command, answer.exported, answer.completed_before) == (None, None, 0)
    assert numbers(orchestrator, answer.run_id) == list(range(PAGES + 1))


def test_a_plain_script_needs_three_lines(site: Site, folder: Path) -> None:
    (folder / "shop.py").write_text(SCRAPER.format(url=site.url))
    lines = 'from shoal import Orchestrator\nanswer = Orchestrator("shop.py").start()\nprint(answer.run.items)\n'
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{PAGES}\n", "")


def test_what_is_logged_goes_to_stderr(site: Site, folder: Path) -> None:
    (folder / "shop.py").write_text(SCRAPER.format(url=site.url))
    lines = f"""
from shoal import Orchestrator
print(Orchestrator("shop.py").start(urls=["{site.url}/gone", "htp://x"]).run.failed)
"""
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "1\n"
    assert "dead letter" in done.stderr
    assert "its scheme 'htp' is not http or https" in done.stderr


def test_a_run_that_was_left_is_gone_on_with(site: Site, store: str) -> None:
    orchestrator = Orchestrator(reader_of(f"{site.url}/"), engine=store)
    queued = orchestrator.start(mode="distributed")
    answer = orchestrator.start(resume=True)
    assert (answer.run_id, answer.status, answer.enqueued) == (queued.run_id, "finished", 0)
    with pytest.raises(UsageError, match="no unfinished run of 'books'"):
        orchestrator.start(resume=True)


def test_an_id_of_a_run_that_works_here_is_used_once(site: Site) -> None:
    orchestrator = Orchestrator(reader_of(f"{site.url}/1"))
    assert orchestrator.start(run_id="mine").run.items == 1
    with pytest.raises(UsageError, match="resume=True"):
        orchestrator.start(run_id="mine")
    assert orchestrator.start(run_id="mine", resume=True).run.items == 1


# What is left to workers


def test_distributed_enqueues_once_and_says_how_to_go_on(store: str, folder: Path) -> None:
    file = folder / "urls.txt"
    file.write_text("".join(f"http://shop{number % 7}.example/{number}\n" for number in range(2500)))
    orchestrator = Orchestrator(reader_of(mode="distributed"), engine=store)
    queued = orchestrator.start("books", urls_file=file, run_id="tonight")
    assert list(queued.as_dict()) == ["status", "run_id", "enqueued", "worker_command"]
    assert (queued.status, queued.run_id, queued.enqueued) == ("queued", "tonight", 2500)
    again = orchestrator.start("books", urls_file=file, run_id="tonight")
    assert again.as_dict() == {**queued.as_dict(), "enqueued": 0}
    more = orchestrator.start("books", urls=["http://shop1.example/1", "http://new.example/"], run_id="tonight")
    assert more.enqueued == 1
    stats = orchestrator.stats("tonight")
    assert (stats.pending, stats.claimed, stats.completed, stats.failed, stats.remaining) == (2501, 0, 0, 0, 2501)
    assert (stats.mode, stats.state, [run.run_id for run in orchestrator.runs()]) == (
        "distributed",
        "running",
        ["tonight"],
    )


def test_the_worker_command_works(site: Site, store: str, folder: Path) -> None:
    (folder / "shop.py").write_text(SCRAPER.format(url=site.url))
    orchestrator = Orchestrator("shop.py", engine=store)
    queued = orchestrator.start(mode="distributed")
    assert site.seen == []
    command = shlex.split(queued.worker_command or "")
    assert command == ["shoal", "worker", "shop.py:books", "--run-id", queued.run_id, "--engine", store]
    assert script(*command[1:], "--drain").returncode == 0
    assert numbers(orchestrator, queued.run_id) == list(range(1, PAGES + 1))
    assert orchestrator.stats(queued.run_id).state == "finished"


def test_the_command_line_adds_to_a_distributed_run_and_never_twice(site: Site, folder: Path) -> None:
    (folder / "shop.py").write_text(SCRAPER.format(url=site.url))
    run = ("run", "shop.py", "--mode", "distributed", "--run-id", "mine")
    first = shoal(*run)
    assert (first.returncode, json.loads(first.stdout)["enqueued"], first.stderr) == (0, 1, "")
    second = shoal(*run)
    assert (second.returncode, json.loads(second.stdout)) == (0, {**json.loads(first.stdout), "enqueued": 0})
    assert second.stderr == "The run mine exists; what it has not seen yet is added to it.\n"
    assert json.loads(shoal(*run, "--url", f"{site.url}/7").stdout)["enqueued"] == 1


def test_a_finished_run_that_is_given_more_is_under_way_again(site: Site) -> None:
    orchestrator = Orchestrator(reader_of(f"{site.url}/1", mode="distributed"))
    orchestrator.start(run_id="mine")
    orchestrator.start(run_id="mine", resume=True, mode="single")
    assert orchestrator.stats("mine").state == "finished"
    orchestrator.start(run_id="mine", urls=[f"{site.url}/2"])
    assert orchestrator.stats("mine").state == "running"


def test_steering() -> None:
    orchestrator = Orchestrator(reader_of(mode="distributed"))
    run_id = orchestrator.start().run_id
    states = []
    for act in (orchestrator.pause, orchestrator.resume, orchestrator.cancel):
        act(run_id)
        states.append(orchestrator.stats(run_id).state)
    assert states == ["paused", "running", "cancelled"]
    with pytest.raises(UsageError, match="was cancelled"):
        orchestrator.start(run_id=run_id)
    with pytest.raises(UnknownRun):
        orchestrator.stats("none")


def test_an_input_belongs_to_its_run() -> None:
    class Cart(BaseModel):
        items: list[str]

    cart = Scraper("cart", input=Cart, mode="distributed")

    @cart.start
    def searches(cart: Cart) -> Iterator[Request]:
        for item in cart.items:
            yield Request(f"http://shop.example/?q={item}")

    @cart.page
    def read(_page: Page) -> None: ...

    orchestrator = Orchestrator(cart)
    assert orchestrator.start(input={"items": ["milk", "eggs"]}, run_id="cart-1").enqueued == 2
    assert orchestrator.start(input={"items": ["milk", "eggs"]}, run_id="cart-1").enqueued == 0
    with pytest.raises(UsageError, match="another input"):
        orchestrator.start(input={"items": ["tea"]}, run_id="cart-1")


# Which scrapers there are


def test_the_mode_comes_from_the_settings_without_touching_the_code(folder: Path) -> None:
    (folder / "shoal.toml").write_text('[scrapers.books]\nmode = "distributed"\n')
    orchestrator = Orchestrator([reader_of(), Scraper("other")])
    modes = {scraper.name: scraper.mode for scraper in orchestrator.scrapers()}
    assert modes == {"books": "distributed", "other": "single"}
    assert orchestrator.start("books").status == "queued"


@pytest.mark.parametrize("run_id", ["", "last", "bad id!"])
def test_what_a_run_cannot_be_called(run_id: str, site: Site) -> None:
    with pytest.raises(UsageError, match="A run cannot be called"):
        Orchestrator(reader_of(f"{site.url}/")).start(run_id=run_id)


def test_what_cannot_be_started_is_one_sentence() -> None:
    orchestrator = Orchestrator([reader_of(), Scraper("shops")])
    with pytest.raises(UsageError, match=r"no scraper 'shop'; did you mean 'shops'\?"):
        orchestrator.start("shop")
    with pytest.raises(UsageError, match="Say which scraper to start; there are books, shops"):
        orchestrator.start()
    with pytest.raises(UsageError, match="nothing to fetch"):
        orchestrator.start("shops")
    with pytest.raises(BadTarget, match="Two scrapers are called 'books'"):
        Orchestrator([reader_of(), reader_of()])
    with pytest.raises(UsageError, match=r"There is no file 'none\.txt'"):
        orchestrator.start("books", urls_file="none.txt")


def test_a_script_that_starts_runs_when_it_is_loaded_is_refused(site: Site, folder: Path) -> None:
    script_ = f"{SCRAPER.format(url=site.url)}\nfrom shoal import Orchestrator\nOrchestrator(books).start()\n"
    (folder / "shop.py").write_text(script_)
    answer = shoal("worker", "shop.py", "--drain")
    assert answer.returncode == 2
    assert "shop.py, line 15: loading the file would start a run" in answer.stderr
    assert 'if __name__ == "__main__":' in answer.stderr
    assert site.seen == []


# In a loop


async def test_in_async_code(site: Site, store: str) -> None:
    async def urls() -> AsyncIterator[str]:
        for number in range(3):
            yield f"{site.url}/{number + 1}"

    async with AsyncOrchestrator(reader_of(), engine=store) as orchestrator:
        answer = await orchestrator.start(urls=urls())
        found = [item["n"] async for item in orchestrator.items(answer.run_id)]
    assert sorted(found) == [1, 2, 3]
    with pytest.raises(UsageError, match="use AsyncOrchestrator there"):
        Orchestrator(reader_of()).runs()


async def test_outside_of_its_block_it_says_so() -> None:
    orchestrator = AsyncOrchestrator(reader_of())
    with pytest.raises(UsageError, match="within `async with AsyncOrchestrator"):
        await orchestrator.start()
    async with orchestrator:
        assert await orchestrator.runs() == []
    with pytest.raises(UsageError, match="call it in there"):
        await orchestrator.runs()


async def test_a_run_that_is_left_to_workers_can_be_waited_for(site: Site, store: str, folder: Path) -> None:
    scraper = reader_of(f"{site.url}/", mode="distributed")
    async with AsyncOrchestrator(scraper, engine=store) as orchestrator:
        waiting = asyncio.create_task(orchestrator.start(run_id="mine", wait=True, output=folder / "items.jsonl"))
        await until(orchestrator.runs, "the run is there")
        assert not waiting.done()
        assert not (folder / "items.jsonl").exists()
        worked = await orchestrator.start(run_id="mine", resume=True, mode="single")
        answer = await waiting
    assert (worked.status, worked.exported) == ("finished", None)
    assert (answer.status, answer.enqueued, answer.run, answer.exported) == ("finished", 1, worked.run, PAGES + 1)
    assert shlex.split(answer.worker_command or "")[:2] == ["shoal", "worker"]
    assert len((folder / "items.jsonl").read_text().splitlines()) == PAGES + 1


def test_what_a_program_starts_is_recorded_where_the_settings_say_so(
    site: Site, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_EVENTS", "events")
    Orchestrator(reader_of(f"{site.url}/1")).start()
    assert History.read(folder / "events").of("exchange")


def test_a_status_is_the_json_of_the_command_line(site: Site) -> None:
    answer = Orchestrator(reader_of(f"{site.url}/1")).start(run_id="mine")
    (listed,) = json.loads(shoal("runs", "--json").stdout)
    assert listed == answer.run.as_dict()
    told = json.loads(shoal("stats", "mine", "--json").stdout)
    assert told == {**listed, "workers": told["workers"], "eta": None, "halted": None}


# Many


@pytest.mark.parametrize("many", [20_000, pytest.param(100_000, marks=pytest.mark.proof)])
def test_many_urls_pass_through_little_memory(folder: Path, many: int) -> None:
    """Neither the file nor what was made of it is ever in memory as a whole: the peak is far below its size.

    The URLs are long, so that what an engine may remember of many (a key, a site) does not count.
    """
    file = folder / "urls.txt"
    with file.open("w") as stream:
        stream.writelines(f"http://shop{number % 1000}.example/{LONG}/{number}\n" for number in range(many))
    orchestrator = Orchestrator(reader_of(mode="distributed"))
    orchestrator.start(urls=["http://shop.example/first"])
    tracemalloc.start()
    try:
        queued = orchestrator.start(urls_file=file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    print(f"{queued.enqueued:,} URLs of {file.stat().st_size:,} bytes in all; at most {peak:,} bytes at a time")
    assert queued.enqueued == many
    assert peak < file.stat().st_size / 4


LONG = "a-page-with-a-long-name/" * 80


def test_a_run_that_cannot_succeed_is_paused_and_says_why(site: Site, store: str) -> None:
    """On every engine: a program is told, and goes on with the run when its handler is mended."""
    mended: list[bool] = []
    scraper = Scraper("books", delay=0.0)

    @scraper.page
    def read(page: Page) -> object:
        return {"n": int(page.text("h1" if mended else ".none") or "none")}

    orchestrator = Orchestrator(scraper, engine=store)
    urls = [f"{site.url}/{number}" for number in range(1, PAGES + 1)]
    result = orchestrator.start(urls=urls, run_id="mine")
    assert (result.status, result.run.failed + result.run.remaining) == ("paused", PAGES)
    assert result.run.remaining > 0
    assert str(result.halted).startswith("The first 10 pages all failed in the handler in the same way: ValueError: ")
    assert "test_orchestrator.py:" in str(result.halted)
    mended.append(True)
    rest = orchestrator.start(run_id="mine", resume=True)
    assert (rest.status, rest.halted, rest.run.completed) == ("finished", None, result.run.remaining)

"""What a store cannot hold costs at most itself: a gateway and workers on PostgreSQL, which refuses the most."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from servers.postgres import shared_server
from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.frontier.postgres.engine import PostgresEngine, open_postgres
from shoal.testing.hostile_site import HostileSite
from support.gateway_process import Reply, Served, serving
from support.working import crawl

SCRAPERS = """
from pydantic import BaseModel
from shoal import Page, Request, Scraper

class Cart(BaseModel):
    items: list[str]

cart = Scraper("cart", input=Cart, delay=0, obey_robots=False, attempts=1)

@cart.start
def searches(cart: Cart):
    for item in cart.items:
        if item.startswith("raise "):
            raise ValueError(item)
        url = "http://127.0.0.1:1/" if item != "host" else "http://" + "a." * 2500 + "example/"
        yield Request(url, group=item, dedup=False)

@cart.page
def read(page: Page):
    yield {}
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("unstorable")
    (folder / "cart.py").write_text(SCRAPERS)
    url = shared_server().url(schema=f"unstorable_{secrets.token_hex(4)}")
    variables = {"SHOAL_GUARD__ALLOW_NETWORKS": '["127.0.0.0/8"]'}
    with serving(folder, "cart.py", "--port", "0", engine=url, at=folder, **variables) as gateway:
        yield gateway


def _another_client_is_served(gateway: Served) -> None:
    gateway.submit("/cart", {"items": ["milk"]})
    assert gateway.process.poll() is None


@pytest.mark.parametrize("item", ["a\0b", "x" * 5000, "host"], ids=["NUL in a group", "long group", "long host"])
def test_a_submission_that_no_store_holds_is_refused_and_the_gateway_goes_on(gateway: Served, item: str) -> None:
    refused = gateway.ask("/cart", {"items": [item]})
    assert refused.status == 422, refused.raw
    assert refused.body["refused"][0]["reason"]
    partly = gateway.ask("/cart", {"items": [item, "milk"]})
    assert (partly.status, len(partly.body["refused"])) == (202, 1)
    _another_client_is_served(gateway)


def test_the_error_of_a_start_function_is_cleaned_and_told(gateway: Served) -> None:
    job_id = gateway.submit("/cart", {"items": ["raise a\0b " + "x" * 5000]})
    told = gateway.finished(job_id)
    assert told["status"] == "failed"
    assert "ValueError: raise a\ufffdb x" in told["error"]
    _another_client_is_served(gateway)


@pytest.mark.parametrize("path", ["/jobs/a%00b/items", "/jobs/a%00b/events", "/results/a%00b", "/jobs/a%00b"])
def test_an_odd_id_is_an_unknown_one(gateway: Served, path: str) -> None:
    answers: list[Reply] = [gateway.ask(path)]
    if path == "/jobs/a%00b":
        answers.append(gateway.ask(path, method="DELETE"))
    assert {answer.status for answer in answers} == {404}, [answer.raw for answer in answers]
    _another_client_is_served(gateway)


@pytest.fixture
async def postgres() -> AsyncIterator[PostgresEngine]:
    engine = await open_postgres(shared_server().url(schema=f"unstorable_{secrets.token_hex(4)}"))
    yield engine
    await engine.close()


async def test_a_page_with_links_that_no_store_holds_is_done_and_they_are_counted(
    postgres: PostgresEngine, site: HostileSite
) -> None:
    scraper = Scraper("hostile", start=[site.url("/empty")], delay=0, obey_robots=False)

    @scraper.page
    def read(page: Page) -> object:
        yield {"url": page.url}
        yield Request("http://" + "a." * 2300 + "example/")
        yield Request(site.url("/1"), group="a\0b")
        yield Request(site.url("/2"), group="x" * 5000)
        yield Request(site.url("/3"), data={"deep": "a\0b"})
        yield Request(site.url("/4"), data={"half": "\ud800"})
        yield Request(site.url("/json"), to="plain", group="fine")

    @scraper.page("plain")
    def plain(page: Page) -> object:
        yield {"group": page.group}

    crawled = await crawl(postgres, scraper)
    assert [item.get("group") for item in crawled.items] == [None, "fine"]
    assert (crawled.counters.done, crawled.counters.refused, crawled.counters.crashes) == (2, 5, 0)
    assert site.log.counts()["/empty"] == 1, "the page was fetched once"


async def test_an_item_that_no_store_holds_is_the_failure_of_its_page(
    postgres: PostgresEngine, site: HostileSite, tmp_path: Path
) -> None:
    scraper = Scraper("hostile", start=[site.url("/empty"), site.url("/json")], delay=0, obey_robots=False)

    @scraper.page
    def read(page: Page) -> object:
        yield {"title": "\ud800" if page.url.endswith("/empty") else "a\0b"}

    crawled = await crawl(postgres, scraper)
    assert [item["title"] for item in crawled.items] == ["a\0b"], "JSON holds it, and it comes back as it was"
    assert "title" in crawled.only_death.reason.text

"""Hosts that are one site: one pace at the target, robots.txt and redirects host by host, and `explain` finds them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from shoal import BadScraper, Request, Route, Scraper
from shoal.config.settings import Settings
from shoal.core.task import NewTask
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.insight.look_up import look_up
from shoal.intake.admission import to_task
from shoal.testing.hostile_site import HostileSite
from support.working import crawl, reader, start_run

HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")
TOGETHER = Route(host="127.0.0.*", site="here")


async def sites_of(engine: SqliteEngine, site: HostileSite) -> set[str]:
    """Which of the sites that could have been known are."""
    could = ["here", *(f"{host}:{site.port}" for host in HOSTS)]
    return {key for key in could if await engine.reader.site(key) is not None}


async def test_hosts_of_one_site_are_visited_at_one_pace(engine: SqliteEngine, site: HostileSite) -> None:
    urls = [site.url(f"/json?{n}", host=host) for n in range(2) for host in HOSTS]
    crawled = await crawl(engine, reader(delay="150ms", routes=[TOGETHER]), urls=urls)
    assert crawled.counters.done == len(urls)
    gaps = [later - earlier for earlier, later in pairwise(sorted(entry.started for entry in site.log))]
    print(f"smallest gap over three hosts: {min(gaps):.3f} s of 0.150")
    assert min(gaps) >= 0.149
    assert await sites_of(engine, site) == {"here"}


async def test_each_host_has_its_own_robots_and_the_longest_crawl_delay_holds(
    engine: SqliteEngine, site: HostileSite
) -> None:
    site.robots[HOSTS[0]] = b"User-agent: *\nDisallow: /json\nCrawl-delay: 0.3\n"
    site.robots[HOSTS[1]] = b"User-agent: *\nDisallow:\n"
    here, there = HOSTS[:2]
    urls = [site.url(path, host=here) for path in ("/json", "/site/1/")] + [site.url("/json", host=there)]
    crawled = await crawl(engine, reader(delay=0, obey_robots=True, routes=[TOGETHER]), urls=urls)
    assert (crawled.counters.done, crawled.counters.dropped) == (2, 1)
    asked = [(entry.host, entry.path) for entry in site.log]
    assert asked == [(here, "/robots.txt"), (here, "/site/1/"), (there, "/robots.txt"), (there, "/json")]
    record = await engine.reader.site("here")
    assert record is not None
    assert record.delay == 300


async def test_a_redirect_to_another_host_is_a_task_of_the_same_site(engine: SqliteEngine, site: HostileSite) -> None:
    there = site.url("/json", host=HOSTS[1])
    crawled = await crawl(engine, reader(routes=[TOGETHER]), urls=[site.url(f"/redirect-to?url={there}")])
    assert (crawled.counters.done, crawled.counters.dead) == (2, 0)
    assert [entry.host for entry in site.log] == list(HOSTS[:2])
    assert await sites_of(engine, site) == {"here"}


@pytest.mark.parametrize("routes", [[TOGETHER], []], ids=["by rule", "by host"])
async def test_explain_finds_a_page_where_its_run_keeps_it(engine: SqliteEngine, routes: Any) -> None:
    scraper = reader(routes=routes)
    await start_run(engine, scraper, urls=["http://127.0.0.2/a", "http://127.0.0.1/b"])
    _, [(place, said)] = await look_up(engine, Settings(), "http://127.0.0.1/b")
    assert (place.run_id, place.ahead) == ("run", 1 if routes else 0)
    before = "1 of its site is" if routes else "nothing of its site is"
    assert said.where == f"It waits in the lane bulk; {before} before it."


def site_for(url: str, **options: Any) -> str:
    scraper = Scraper("x", **options)
    scraper.page(lambda page: None)
    task = to_task(Request(url), scraper)
    assert isinstance(task, NewTask)
    return task.site


def test_a_scraper_says_what_its_sites_are() -> None:
    url = "https://www.example.co.uk:8443/"
    assert site_for(url) == "www.example.co.uk:8443"
    assert site_for(url, site="domain") == "example.co.uk"
    assert site_for(url, routes=[Route(host="example.co.uk", site="shop")]) == "shop"
    assert site_for(url, site="domain", routes=[Route(host="other.example", site="shop")]) == "example.co.uk"


def test_a_route_is_for_hosts_whatever_site_they_are_of() -> None:
    slow = Scraper("x", site="domain", routes=[Route(host="www.a.example", delay="5s", lane="priority")])
    slow.page(lambda page: None)
    task = to_task(Request("https://www.a.example/"), slow)
    assert isinstance(task, NewTask)
    assert (task.site, task.lane) == ("a.example", "priority")
    assert slow.routes is not None
    assert slow.routes.delay_of("www.a.example") == 5000


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"site": "page"}, "site must be one of host, domain, not 'page'"),
        (
            {"routes": [Route(path="/x", site="a")]},
            "route 1: site is about whole hosts: a route with a site has a host",
        ),
        ({"routes": [Route(host="a", site="a b")]}, "route 1: site = 'a b' is not a name of one word"),
    ],
)
def test_what_cannot_be_a_site_is_one_sentence(options: Any, says: str) -> None:
    with pytest.raises(BadScraper) as wrong:
        Scraper("x", **options)
    assert says in str(wrong.value)

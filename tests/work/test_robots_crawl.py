"""RFC 9309 as a site sees it: which requests are made for its robots.txt, and which are not made because of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from shoal.api.scraper import Scraper
from shoal.core import log_events
from shoal.fetch.robots import cache as robots
from shoal.fetch.robots.cache import RobotsCache
from shoal.frontier.sqlite.cache import SqliteCache
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.insight.audit import Rule, audit, read, stream_of
from shoal.testing.hostile.call import Call
from shoal.testing.hostile_site import HostileSite, RobotsAt, RobotsKind
from shoal.testing.jump_clock import JumpClock
from shoal.work.options import WorkTiming
from shoal.work.task.attempt import Attempt
from shoal.work.task.classify import Classifier
from shoal.work.task.robots_permission import Permission
from support.working import AGENT, Crawled, crawl, reader

HERE, THERE, BEYOND = "127.0.0.1", "127.0.0.2", "127.0.0.3"
PAGES = ("/private/x", "/json")


SOON = WorkTiming(robots_meanwhile=50, robots_kept_without_answer=50, robots_retry=60)
"""What could not be had is asked for again after a few milliseconds."""


async def visit(engine: SqliteEngine, site: HostileSite, **options: Any) -> Crawled:
    scraper = reader(obey_robots=True, **options)
    return await crawl(engine, scraper, urls=[site.url(path) for path in PAGES], timing=SOON)


def asked(site: HostileSite, host: str) -> list[str]:
    return [entry.path for entry in site.log if entry.host == host]


async def test_the_file_as_it_comes_over_the_wire(engine: SqliteEngine, site: HostileSite) -> None:
    """A byte order mark, ends of lines of all kinds, groups for others, for us and for all, escapes, stars and ends."""
    site.robots[HERE] = (
        b"\xef\xbb\xbfUser-agent: *\rDisallow: /\r\rUser-agent: shoal\r\nDisallow: /html/\r\n"
        b"User-agent: other\nUser-Agent: SHOALTEST/9 # us\nSitemap: /x\nDisallow: /%73tatus/*4$\nDisallow: /s\n"
        b"Allow: /site\nUser-agent: shoaltest\nDisallow: /*?*key=\xc3\xa9\n"
    )
    paths = ("/json", "/html/broken", "/status/204", "/status/200", "/site/3/", "/json?a=1&key=%C3%A9x", "/json?key=e")
    crawled = await crawl(engine, reader(obey_robots=True), urls=[site.url(path) for path in paths])
    assert set(asked(site, HERE)) == {"/robots.txt", "/json", "/html/broken", "/site/3/", "/json?key=e"}
    assert (crawled.counters.done, crawled.counters.dropped) == (4, 3)


# Redirects


async def test_five_redirects_are_followed_and_the_rules_hold_where_they_began(
    engine: SqliteEngine, site: HostileSite
) -> None:
    site.robots[HERE] = RobotsAt(site.url("/redirect-to?status=302&url=/redirect-to?url=/redirect-to?url=/rules"))
    site.pages["/rules"] = "User-agent: *\nDisallow: /private/\n"
    crawled = await visit(engine, site)
    assert (crawled.counters.done, crawled.counters.dropped) == (1, 1)
    assert site.log.counts()["/rules"] == 1


@pytest.mark.parametrize(("redirects", "obeyed"), [(4, True), (5, True), (6, False)])
async def test_more_than_five_redirects_are_as_good_as_no_file(
    engine: SqliteEngine, site: HostileSite, redirects: int, obeyed: bool
) -> None:
    async def answer(call: Call) -> None:
        step = int(call.query.get("n", 0))
        if step < redirects:
            await call.answer(b"", ("Location", f"/robots.txt?n={step + 1}"), status=308)
        else:
            await call.answer("User-agent: *\nDisallow: /private/\n")

    site.robots[HERE] = answer
    crawled = await visit(engine, site, delay=0.02)
    assert crawled.counters.dropped == obeyed
    assert len([path for path in asked(site, HERE) if "robots" in path]) == min(redirects, 5) + 1
    assert site.log.smallest_gap() >= 0.02


@pytest.mark.parametrize("concurrency", [1, 8])
async def test_a_redirect_to_another_site_is_followed_in_that_sites_turn(
    engine: SqliteEngine, site: HostileSite, concurrency: int
) -> None:
    """Both sites keep their clocks; a page of the first is not fetched before its rules are known."""
    site.robots[HERE] = RobotsAt(site.url("/robots.txt", host=THERE))
    site.robots[THERE] = RobotsAt(site.url("/robots-kind/disallow-private", host=BEYOND))
    crawled = await visit(engine, site, delay=0.05, concurrency=concurrency)
    assert asked(site, HERE) == ["/robots.txt", "/json"]
    assert (asked(site, THERE), asked(site, BEYOND)) == (["/robots.txt"], ["/robots-kind/disallow-private"])
    assert [entry.host for entry in site.log] == [HERE, THERE, BEYOND, HERE]
    assert [(entry.method, entry.status) for entry in site.log] == [
        ("GET", 301),
        ("GET", 301),
        ("GET", 200),
        ("GET", 200),
    ]
    assert (crawled.counters.dropped, crawled.counters.dead, crawled.counters.retries) == (1, 0, 0)
    assert site.log.smallest_gap() >= 0.05
    assert {slot.penalty for slot in await engine.reader.slots(f"{HERE}:{site.port}")} == {0}


async def test_sites_that_send_for_each_other_end_after_five(engine: SqliteEngine, site: HostileSite) -> None:
    site.robots[HERE] = RobotsAt(site.url("/robots.txt", host=THERE))
    site.robots[THERE] = RobotsAt(site.url("/robots.txt", host=HERE))
    crawled = await visit(engine, site)
    assert len([entry for entry in site.log if entry.path == "/robots.txt"]) == 6
    assert (crawled.counters.dropped, crawled.counters.dead) == (0, 0)


class Meanwhile:
    """A real cache, that is told the rules of an origin by others between two looks that a worker takes at them."""

    def __init__(self, cache: SqliteCache, origin: str) -> None:
        self._cache = cache
        self._origin = origin
        self.looks = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        found = await self._cache.get(keys)
        self.looks += sum(key.endswith(self._origin) for key in keys)
        if self.looks == 5:  # three were of who sends for it, and one of who is sent
            await RobotsCache(self._cache, AGENT).learn(self._origin, 404, b"")
        return found


async def test_what_comes_back_between_two_looks_is_not_asked_for_again(
    engine: SqliteEngine, site: HostileSite
) -> None:
    """Another worker brings the answer just after this one has seen that there is none."""
    looked_at = Meanwhile(engine.cache, site.url("/").rstrip("/"))
    engine.cache = looked_at  # type: ignore[assignment]
    site.robots[HERE] = RobotsAt(site.url("/robots.txt", host=THERE))
    site.robots[THERE] = RobotsKind.TIMEOUT
    crawled = await visit(engine, site, timeout=1)
    assert looked_at.looks >= 5
    assert asked(site, HERE).count("/robots.txt") == 1
    assert crawled.counters.done == len(PAGES)


async def test_a_robots_txt_elsewhere_that_cannot_be_had(engine: SqliteEngine, site: HostileSite) -> None:
    site.robots[HERE] = RobotsAt(site.url("/status/500", host=THERE))
    crawled = await visit(engine, site, attempts=2, site_down_after=0)
    assert set(asked(site, HERE)) == {"/robots.txt"}
    assert crawled.counters.dead == 2


@pytest.mark.parametrize("target", ["ftp://a.example/robots.txt", "http://", "javascript:x", "http://127.0.0.1:99999/"])
async def test_a_redirect_to_nowhere_is_as_good_as_no_file(
    engine: SqliteEngine, site: HostileSite, target: str
) -> None:
    site.robots[HERE] = RobotsAt(target)
    crawled = await visit(engine, site)
    assert (crawled.counters.done, asked(site, HERE)[0]) == (2, "/robots.txt")


# Large files


@pytest.mark.parametrize("encoded", [False, True])
async def test_of_a_file_without_end_the_first_500_kib_are_read(
    engine: SqliteEngine, site: HostileSite, encoded: bool
) -> None:
    """20 MB, and none of it is refused for its size. The connection is not used for anything else."""

    async def answer(call: Call) -> None:
        call.begin(200, ("Content-Type", "text/plain"), ("Content-Length", str(20 * 10**6)))
        await call.send(b"User-agent: *\nDisallow: /private/\n")
        for _ in range(2000):
            await call.send(b"# nothing at all to see here\n" * 350)

    site.robots[HERE] = RobotsKind.HUGE if encoded else answer
    crawled = await visit(engine, site)
    assert (crawled.counters.done, crawled.counters.dropped) == (1, 1)
    assert crawled.counters.received < 3 * 10**6


# When it cannot be had


async def test_after_thirty_days_without_an_answer_it_is_taken_not_to_be_there(engine: SqliteEngine) -> None:
    clock = JumpClock()
    book = robots.RobotsCache(engine.cache, "shoal", clock)
    day = 24 * 3600 * 1000
    origin = "http://a.example"
    allowed = []
    for _ in range(32):
        rules = await book.learn(origin, 503, b"")
        allowed.append(rules.allowed(f"{origin}/x"))
        clock.advance(day)
    assert allowed == [False] * 30 + [True] * 2


# What is said


async def test_who_does_not_ask_says_so_once(engine: SqliteEngine, site: HostileSite) -> None:
    site.robots[HERE] = RobotsKind.DISALLOW_ALL
    with capture_logs() as logs:
        crawled = await crawl(engine, reader(), urls=[site.url(path) for path in PAGES])
    said = [line for line in logs if line["event"] == log_events.ROBOTS_IGNORED]
    assert [(line["scraper"], line["reason"], line["log_level"]) for line in said] == [
        ("test", "obey_robots=False", "warning")
    ]
    assert (crawled.counters.done, asked(site, HERE).count("/robots.txt")) == (2, 0)


@pytest.mark.parametrize("obeys", [True, False])
async def test_the_log_bears_witness_whatever_was_decided(
    engine: SqliteEngine, site: HostileSite, obeys: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If we did not keep to robots.txt although we say that we do, the audit would say so."""
    site.robots[HERE] = RobotsKind.DISALLOW_PRIVATE

    async def careless(self: Permission, attempt: Attempt, scraper: Scraper, classify: Classifier) -> None:
        await self.rules(attempt, scraper, classify)

    if not obeys:
        # No worker can be told to do this: only one that is broken on purpose shows that its log would say so.
        monkeypatch.setattr(Permission, "refusal", careless)
    await visit(engine, site)
    notes = await engine.reader.notes(stream_of("run"))
    report = audit([record for body in notes.bodies for record in read(body)])
    assert report.requests == len(site.log)
    assert [breach.rule for breach in report.breaches] == ([] if obeys else [Rule.ROBOTS])


async def test_a_crawl_delay_is_capped_by_the_setting(engine: SqliteEngine, site: HostileSite) -> None:
    site.robots[HERE] = "User-agent: *\nCrawl-delay: 3600\n"
    crawled = await crawl(
        engine, reader(obey_robots=True), urls=[site.url(path) for path in PAGES], max_crawl_delay=200
    )
    assert crawled.counters.done == 2
    assert site.log.smallest_gap() >= 0.2

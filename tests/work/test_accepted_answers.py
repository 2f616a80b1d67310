"""Answers that are not 2xx, for those who want them; redirects that are told, not followed, or written in HTML."""

from __future__ import annotations

from typing import Any

import pytest

from shoal import Page, Request, Scraper
from shoal.core.outcome import Blame
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.insight.changes import ChangeKind, changes_since
from shoal.testing.hostile.call import Call
from shoal.testing.hostile_site import HostileSite
from support.working import crawl, reader


def teller(**options: Any) -> Scraper:
    """Says what it was given, and by which way."""
    scraper = Scraper("test", **{"delay": 0.0, "obey_robots": False, **options})

    @scraper.page
    def read(page: Page) -> dict[str, object]:
        return {
            "path": page.url.split("/", 3)[3],
            "status": page.status,
            "h1": page.text("h1"),
            "history": [[hop.url.split("/", 3)[3], hop.status, hop.headers.get("location")] for hop in page.history],
        }

    return scraper


def statuses(crawled: Any) -> list[int]:
    return sorted(item["status"] for item in crawled.items)


class TestAccept:
    async def test_statuses_of_the_scraper_are_handed_to_its_handlers_and_no_others(
        self, engine: SqliteEngine, site: HostileSite
    ) -> None:
        urls = [site.url(f"/status/{code}") for code in (200, 404, 410, 403, 500)]
        crawled = await crawl(engine, reader(accept=[404, 500], attempts=1), urls=urls)
        assert statuses(crawled) == [200, 404, 500]
        assert sorted(crawled.dead) == ["/status/403", "/status/410"]

    async def test_what_the_request_says_goes_before_the_handler_and_that_before_the_scraper(
        self, engine: SqliteEngine, site: HostileSite
    ) -> None:
        scraper = teller(accept=[404])
        scraper.page("strict", accept=[])(lambda page: {"status": page.status})
        scraper.page("own", accept=[410])(lambda page: {"status": page.status})
        scraper.start_urls = (
            Request(site.url("/status/404?default")),
            Request(site.url("/status/404?strict"), "strict"),
            Request(site.url("/status/404?own"), "own"),
            Request(site.url("/status/410?own"), "own"),
            Request(site.url("/status/403?own"), "own", accept=[403]),
            Request(site.url("/status/404?none"), accept=[]),
        )
        crawled = await crawl(engine, scraper)
        assert statuses(crawled) == [403, 404, 410]
        assert sorted(crawled.dead) == ["/status/404?none", "/status/404?own", "/status/404?strict"]

    async def test_a_rate_limit_stays_one(self, engine: SqliteEngine, site: HostileSite) -> None:
        urls = [site.url("/503/first/1/1/x"), site.url("/503/bare")]
        crawled = await crawl(engine, reader(accept=[503], attempts=1), urls=urls)
        assert sorted((item["status"], item["h1"]) for item in crawled.items) == [(200, "at last"), (503, "too much")]
        assert crawled.counters.retries == 0

    async def test_a_handler_that_fails_with_an_accepted_answer_has_failed_and_not_its_site(
        self, engine: SqliteEngine, site: HostileSite
    ) -> None:
        scraper = Scraper("test", delay=0.0, obey_robots=False, accept=[500], start=[site.url("/status/500")])
        scraper.page(lambda page: page.json("none"))
        letter = (await crawl(engine, scraper)).only_death
        assert (letter.reason.blame, letter.reason.text[:10]) == (Blame.HANDLER, "ValueError")

    async def test_a_page_that_is_gone_is_one_for_changes_too(self, engine: SqliteEngine, site: HostileSite) -> None:
        scraper = Scraper("test", delay=0.0, obey_robots=False, accept=[404], changes=True)
        scraper.page(lambda page: {"status": page.status, "unchanged": page.unchanged})
        told = []
        for visit in ("a", "b", "c", "d"):
            told += (await crawl(engine, scraper, visit, urls=[site.url("/fading/404/2/3/x")])).items
        assert [item["unchanged"] for item in told] == [False, False, True, False]
        changes = await changes_since(engine.reader, ["test"])
        assert [change.kind for change in changes.changes] == [ChangeKind.NEW, ChangeKind.GONE, ChangeKind.NEW]


class TestRedirectsThatAreNotFollowed:
    @pytest.mark.parametrize("where", ["scraper", "request", "accept"])
    async def test_they_are_handed_to_the_handler(self, engine: SqliteEngine, site: HostileSite, where: str) -> None:
        scraper = teller(redirects=where != "scraper", accept=[302] if where == "accept" else [])
        redirects = False if where == "request" else None
        scraper.start_urls = (Request(site.url("/redirect-to?url=/json"), redirects=redirects),)
        crawled = await crawl(engine, scraper)
        assert statuses(crawled) == [302]
        assert len(site.log) == 1

    async def test_a_request_may_be_led_on_where_the_scraper_is_not(
        self, engine: SqliteEngine, site: HostileSite
    ) -> None:
        scraper = teller(redirects=False)
        scraper.start_urls = (Request(site.url("/redirect-to?url=/status/200"), redirects=True),)
        assert statuses(await crawl(engine, scraper)) == [200]


class TestHistory:
    async def test_each_step_is_told_also_of_those_that_led_from_another_site(
        self, engine: SqliteEngine, site: HostileSite
    ) -> None:
        last = site.url("/status/200", host="127.0.0.2")
        start = f"/redirect-to?url=/redirect-to?url={last}&status=301"
        [item] = (await crawl(engine, teller(), urls=[site.url(start)])).items
        assert item["history"] == [
            [start[1:], 301, f"/redirect-to?url={last}"],
            [f"redirect-to?url={last}", 302, last],
        ]
        assert item["path"] == "status/200"

    async def test_cookies_are_nobodys_to_read_and_long_headers_do_not_travel(
        self, engine: SqliteEngine, site: HostileSite
    ) -> None:
        async def lead(call: Call, _rest: list[str]) -> None:
            fields = [("X-Short", "1"), ("Set-Cookie", "sid=secret"), ("X-Long", "x" * 5000)]
            await call.answer(b"", ("Location", "/status/200"), *fields, status=302)

        site._site.routes["lead"] = lead
        scraper = reader()
        seen: list[dict[str, str]] = []
        scraper.handlers.clear()
        scraper.page(lambda page: seen.extend(dict(hop.headers) for hop in page.history))
        await crawl(engine, scraper, urls=[site.url("/lead")])
        [headers] = seen
        assert headers["X-Short"] == "1"
        assert not {"Set-Cookie", "X-Long"} & headers.keys()


class TestMetaRefresh:
    @pytest.mark.parametrize("follows", [True, False])
    async def test_it_is_followed_if_the_scraper_says_so(
        self, engine: SqliteEngine, site: HostileSite, follows: bool
    ) -> None:
        async def refresh(call: Call, _rest: list[str]) -> None:
            await call.answer('<h1>wait</h1><meta http-equiv=refresh content="0; url=/status/200">')

        site._site.routes["refresh"] = refresh
        [item] = (await crawl(engine, teller(meta_refresh=follows), urls=[site.url("/refresh")])).items
        assert item["path"] == ("status/200" if follows else "refresh")
        assert item["history"] == ([["refresh", 200, None]] if follows else [])

    async def test_a_form_that_was_sent_is_not_sent_again_and_a_circle_ends(
        self, engine: SqliteEngine, site: HostileSite
    ) -> None:
        methods: list[str] = []

        async def circle(call: Call, rest: list[str]) -> None:
            methods.append(call.method)
            await call.answer(f'<meta http-equiv=refresh content="0; url=/circle/{int(rest[0]) + 1}">')

        site._site.routes["circle"] = circle
        scraper = teller(meta_refresh=True)
        scraper.start_urls = (Request(site.url("/circle/0"), form={"a": 1}),)
        crawled = await crawl(engine, scraper)
        assert crawled.only_death.reason.text == "more than 10 redirects"
        assert methods == ["POST"] + ["GET"] * 10


class TestRequests:
    async def test_bodies_and_cookies_arrive(self, engine: SqliteEngine, site: HostileSite) -> None:
        scraper = Scraper("test", delay=0.0, obey_robots=False)

        @scraper.page
        def read(page: Page) -> dict[str, object]:
            said = page.json()
            named = {name: said["headers"].get(name) for name in ("content-type", "cookie")}
            return {"method": said["method"], "body": said["body"], **named}

        scraper.start_urls = (
            Request(site.url("/echo?1"), json={"q": 1}, cookies={"a": "1"}),
            Request(site.url("/echo?2"), form={"q": "é"}),
        )
        items = sorted((await crawl(engine, scraper)).items, key=lambda item: str(item["body"]), reverse=True)
        assert items == [
            {"method": "POST", "body": '{"q":1}', "content-type": "application/json", "cookie": "a=1"},
            {
                "method": "POST",
                "body": "q=%C3%A9",
                "content-type": "application/x-www-form-urlencoded",
                "cookie": None,
            },
        ]

    async def test_a_request_has_less_time_than_others(self, engine: SqliteEngine, site: HostileSite) -> None:
        scraper = reader(attempts=1)
        scraper.start_urls = (Request(site.url("/delay/60000"), timeout="200ms"), Request(site.url("/status/200")))
        crawled = await crawl(engine, scraper)
        assert (sorted(crawled.dead), len(crawled.items)) == (["/delay/60000"], 1)
        assert "0.2 s" in crawled.only_death.reason.text

    async def test_the_same_page_with_other_bodies_is_asked_for_each_and_with_the_same_once(
        self, engine: SqliteEngine, site: HostileSite
    ) -> None:
        scraper = Scraper("test", delay=0.0, obey_robots=False, start=[site.url("/json")])
        scraper.page(lambda page: page.follow_url("/echo", "ask"))

        @scraper.page("ask")
        def ask(page: Page) -> object:
            """The URL is known to the run by now."""
            return [page.follow_url("/echo", "read", json={"page": number % 2}) for number in range(4)]

        scraper.page("read")(lambda page: {"body": page.json("body")})
        crawled = await crawl(engine, scraper)
        assert sorted(item["body"] for item in crawled.items) == ['{"page":0}', '{"page":1}']

"""The door to the frontier: what becomes a task, what is refused, and what is a mistake in the scraper."""

import hashlib
import re
from typing import Any

import pytest

from shoal import Page, Request, Scraper
from shoal.core.lanes import NO_WORKERS_YET, OWN_WORKERS
from shoal.core.secret_box import NoKeys
from shoal.core.task import NO_EXTRA, Extra, Kind, NewTask, Task
from shoal.errors import BadScraper
from shoal.intake.admission import UNSTAFFED, Refusal, Refused, admit, to_request, to_task


def scraper(**options: Any) -> Any:
    books = Scraper("books", **options)
    books.page(lambda page: None)
    books.page("detail")(lambda page: None)
    return books


def task_of(request: Any, parent_depth: Any = -1, parent_group: Any = None, **options: Any) -> Any:
    task = to_task(request, scraper(**options), parent_depth, parent_group)
    assert isinstance(task, NewTask)
    return task


def test_a_plain_request_becomes_a_plain_task() -> None:
    url = "https://x.example:8443/a?b=1"
    assert task_of(Request("https://X.example:8443/./a?b=1#top")) == NewTask(
        url=url, site="x.example:8443", key=hashlib.sha256(url.encode()).digest(), lane="bulk", extra=NO_EXTRA
    )


def test_all_that_a_request_says_is_in_its_task() -> None:
    request = Request(
        "https://x.example/", "detail", {"n": [1]}, "milk", 7, "priority", 1.5, "post", {"A": "b"}, "é", dedup=False
    )
    assert task_of(request, 2) == NewTask(
        url="https://x.example/", site="x.example", key=None, lane="priority", handler="detail", priority=7, depth=3,
        ttl=1500, extra=Extra(data={"n": [1]}, group="milk", method="POST", headers={"A": "b"}, body="é".encode()),
    )  # fmt: skip


def test_what_is_said_of_the_answer_travels_with_the_task_and_is_seen_again_in_its_request() -> None:
    request = Request("https://x.example/", timeout="2s", accept=[410, 404, 404], redirects=False)
    extra = task_of(request).extra
    assert extra == Extra(timeout=2000, accept=(404, 410), follow=False)
    again = to_request(
        Task(1, "run", "books", "https://x.example/", "x.example", "bulk", None, 0, 0, 0, 0, extra), NoKeys()
    )
    assert (again.timeout, again.accept, again.redirects) == (2.0, (404, 410), False)


def test_json_and_form_are_the_body_of_the_task_and_of_its_key() -> None:
    extra = task_of(Request("https://x.example/", json={"a": 1})).extra
    assert (extra.method, extra.body, extra.headers) == ("POST", b'{"a":1}', {"Content-Type": "application/json"})
    bodies: list[dict[str, Any]] = [{}, {"json": 1}, {"json": 2}, {"form": {}}]
    assert len({task_of(Request("https://x.example/", **body)).key for body in bodies}) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"json": {}, "body": "x"}, "in a way that cannot be sent: it has body and json"),
        ({"cookies": {"a": "b\r\nX: y"}}, "in a way that cannot be sent: the cookie 'a' has a value"),
        ({"headers": 5}, "in a way that cannot be sent"),
        ({"timeout": 60}, "which is longer than the 30 s of the scraper; raise that"),
        ({"timeout": 0}, "with timeout=0; it must be"),
        ({"accept": [200]}, "with accept=[200]; it must be a list of statuses from 300 to 599"),
        ({"accept": [429]}, "without 429: a rate limit is waited for"),
        ({"accept": "404"}, "with accept='404'"),
        ({"redirects": "no"}, "in a way that cannot be stored"),
    ],
)
def test_what_cannot_be_sent_so_is_a_mistake_of_the_scraper(options: Any, said: str) -> None:
    with pytest.raises(BadScraper) as wrong:
        task_of(Request("https://x.example/", **options))
    assert str(wrong.value).startswith("Scraper 'books' asks for https://x.example/")
    assert said in str(wrong.value)


def test_what_is_denied_is_refused_like_what_is_not_allowed() -> None:
    books = scraper(allow=["x.example"], deny=["x.example/private", re.compile(r"[?&]sort=")])
    assert isinstance(to_task(Request("https://x.example/a"), books), NewTask)
    for url in ("https://x.example/private/1", "https://x.example/a?sort=1", "https://y.example/"):
        refused = to_task(Request(url), books)
        assert isinstance(refused, Refused)
        assert refused.kind is Refusal.OUTSIDE
    alone = scraper(deny="y.example")
    assert isinstance(to_task(Request("https://x.example/a"), alone), NewTask)
    assert isinstance(to_task(Request("https://sub.y.example/a"), alone), Refused)


def test_the_group_is_inherited_unless_the_request_has_its_own() -> None:
    assert task_of(Request("https://x.example/"), 0, "milk").extra.group == "milk"
    assert task_of(Request("https://x.example/", group="eggs"), 0, "milk").extra.group == "eggs"


def test_depth_counts_from_the_start() -> None:
    assert task_of(Request("https://x.example/")).depth == 0
    assert task_of(Request("https://x.example/"), 0).depth == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("htp://x.example/", "its scheme 'htp' is not http or https"),
        ("https://x.example/a b", "it contains a space"),
        ("/relative", "it does not begin with http:// or https://"),
        ("javascript:x", "its scheme 'javascript' is not http or https"),
    ],
)
def test_what_is_no_url_is_refused_with_the_reason(url: Any, reason: Any) -> None:
    assert to_task(Request(url), scraper()) == Refused(url, reason)


def test_depth_and_allow_keep_pages_out_and_files_in() -> None:
    books = scraper(max_depth=2, allow=["x.example"])
    page, file = Request("https://y.example/a"), Request("https://y.example/a", kind=Kind.FILE)
    near = Request("https://x.example/a")
    assert to_task(page, books, 0) == Refused(
        "https://y.example/a", "it is outside of what the scraper allows", Refusal.OUTSIDE
    )
    assert to_task(near, books, 2) == Refused("https://x.example/a", "it is deeper than max_depth=2", Refusal.TOO_DEEP)
    assert isinstance(to_task(near, books, 1), NewTask)
    assert isinstance(to_task(file, books, 2), NewTask)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (Request("https://x.example/a", kind=Kind.FILE), Refusal.NO_FILE_WORKERS),
        (Request("https://x.example/a", lane="browser"), Refusal.NO_BROWSER_WORKERS),
    ],
)
def test_what_nobody_would_work_on_is_refused(request_: Request, why: Refusal) -> None:
    refused = admit(request_, scraper())
    assert isinstance(refused, Refused)
    assert (refused.kind, "not part of this version yet" in refused.reason) == (why, True)
    assert isinstance(admit(Request("https://x.example/a"), scraper()), NewTask)
    assert set(UNSTAFFED) == set(NO_WORKERS_YET) == set(OWN_WORKERS)


def test_an_unknown_label_is_a_mistake_in_the_scraper() -> None:
    with pytest.raises(BadScraper, match="has no handler 'detial'; did you mean 'detail'"):
        to_task(Request("https://x.example/", to="detial"), scraper())
    with pytest.raises(BadScraper, match="has no default handler"):
        to_task(Request("https://x.example/"), Scraper("empty"))
    assert isinstance(to_task(Request("https://x.example/", kind=Kind.FILE), Scraper("empty")), NewTask)


@pytest.mark.parametrize(
    ("request_options", "scraper_options", "lane"),
    [
        ({}, {}, "bulk"),
        ({}, {"browser": True}, "browser"),
        ({}, {"lane": "priority"}, "priority"),
        ({}, {"lane": "priority", "browser": True}, "priority"),
        ({"lane": "bulk"}, {"lane": "priority"}, "bulk"),
        ({"kind": Kind.FILE}, {"lane": "priority", "browser": True}, "files"),
        ({"kind": Kind.FILE, "lane": "bulk"}, {}, "bulk"),
        ({"lane": "news"}, {"lanes": {"news": {}}}, "news"),
    ],
)
def test_the_lane_is_the_requests_then_the_kinds_then_the_scrapers(
    request_options: Any, scraper_options: Any, lane: Any
) -> None:
    assert task_of(Request("https://x.example/", **request_options), **scraper_options).lane == lane


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"lane": "prioritty"}, "in the lane 'prioritty', which nobody works; did you mean 'priority'"),
        ({"lane": "x"}, "in the lane 'x', which nobody works; there are priority, bulk, browser, files."),
        ({"data": {"a": object()}}, "with data that JSON cannot hold"),
        ({"ttl": 0}, "with ttl=0; it must be a number of seconds, or a text such as"),
        ({"ttl": 1e20}, "with ttl=1e+20; it must be a number of seconds, or a text such as"),
        ({"every": 1e20}, "with every=1e+20; it must be a number of seconds, or a text such as"),
        ({"ttl": "5 years"}, "with ttl='5 years'; it must be a number of seconds, or a text such as"),
        ({"priority": "high"}, "with priority='high'; it must be a whole number"),
        ({"priority": 1 << 40}, "with priority=1099511627776; it must be a whole number"),
    ],
)
def test_what_no_frontier_could_hold_is_a_mistake_in_the_scraper(options: Any, sentence: Any) -> None:
    with pytest.raises(BadScraper) as wrong:
        to_task(Request("https://x.example/", **options), scraper())
    assert sentence in str(wrong.value)


@pytest.mark.parametrize("url", [None, 5, b"https://x.example/"])
def test_a_url_is_a_string(url: Any) -> None:
    with pytest.raises(BadScraper, match="the URL of a Request must be a string"):
        to_task(Request(url), scraper())


def test_keys_tell_apart_what_is_fetched_apart() -> None:
    url = "https://x.example/a.pdf"
    requests = [
        Request(url),
        Request(url, method="POST"),
        Request(url, method="POST", body=b"a"),
        Request(url, kind=Kind.FILE),
        Request(url, kind=Kind.SITEMAP),
    ]
    assert len({task_of(request).key for request in requests}) == 5
    same = [Request(url), Request(url + "#x"), Request(url, to="detail", data=1, method="get"), Request(url, body=None)]
    assert len({task_of(request).key for request in same}) == 1


def test_what_a_page_resolved_is_not_normalised_again() -> None:
    followed = Page.from_html("<a href='/a'>").follow("a")[0]
    assert task_of(Request(followed.url + "/../b")).url == "https://example.test/b"
    assert task_of(followed) == task_of(Request("https://example.test/a"))
    said_to_be_normal = type(followed.url)("https://example.test/a/../b")
    assert task_of(Request(said_to_be_normal)).url == "https://example.test/a/../b", "it was taken as it is"
    assert type(task_of(followed).url) is str


def test_a_task_gives_back_its_request() -> None:
    request = Request("https://x.example/", "detail", {"n": 1}, "milk", 7, "priority", method="POST", body=b"x")
    new = task_of(request)
    task = Task(1, "run", "books", new.url, new.site, new.lane, new.handler, new.priority, 0, 0, 0, new.extra)
    assert to_request(task, NoKeys()) == request
    redirected = Task(
        1, "r", "s", "https://x.example/2", "x.example", "bulk", None, 0, 0, 0, 0, Extra(first_url=new.url)
    )
    assert to_request(redirected, NoKeys()).url == new.url

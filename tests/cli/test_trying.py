"""`shoal try`, `shoal fetch`, `shoal shell`: one page by the way, polite as a run is, and nothing stored."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal import Request, Scraper
from shoal.cli.running.trying.fetch_report import report
from shoal.cli.running.trying.trial import Tried, opened_trial
from shoal.config.settings import Settings
from shoal.errors import UsageError
from shoal.testing.hostile_site import HostileSite, RobotsKind
from shoal.testing.saved_page import load_page
from support.command_line import script, shoal
from support.counting_site import Site

SCRAPER = """
from shoal import Drop, Page, Scraper

books = Scraper("books", start=["{url}/"], delay=0, allow=["127.0.0.1"], headers={{"Cookie": "id=hidden"}})

@books.page
def listing(page: Page):
    yield from page.follow("a[href='/1']", to="detail")
    yield from page.follow_url("https://elsewhere.example/")

@books.page("detail")
def detail(page: Page):
    yield {{"n": int(page.text("h1")), "data": page.data}}

@books.page("wrong")
def wrong(page: Page):
    yield {{"n": page.text("h2").strip()}}

@books.page("unwanted")
def unwanted(page: Page):
    raise Drop("sold out")
"""


@pytest.fixture
def counting() -> Iterator[Site]:
    site = Site()
    yield site
    site.close()


@pytest.fixture
def file(counting: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in [name for name in os.environ if name.startswith("SHOAL_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SCRAPER.format(url=counting.url))
    return "shop.py"


def test_try_shows_what_a_handler_yields_and_stores_nothing(counting: Site, file: str) -> None:
    answer = shoal("try", file, f"{counting.url}/7", "--to", "detail", "--data", '{"rank": 1}')
    assert (answer.returncode, answer.stdout) == (0, '{"n": 7, "data": {"rank": 1}}\n')
    assert counting.seen == ["/robots.txt", "/7"]
    told = json.loads(shoal("try", file, f"{counting.url}/", "--json").stdout)
    assert told["items"] == []
    assert [(each["url"], each["to"], each["refused"]) for each in told["requests"]] == [
        (f"{counting.url}/1", "detail", None),
        ("https://elsewhere.example/", None, "it is outside of what the scraper allows"),
    ]
    assert sorted(path.name for path in Path().iterdir()) == ["shop.py"], "no store, no file"


def test_handlers_that_are_run_in_processes_of_their_own_can_be_tried(counting: Site, file: str) -> None:
    Path(file).write_text(Path(file).read_text().replace("delay=0,", "delay=0, isolate=True,"))
    answer = shoal("try", file, f"{counting.url}/7", "--to", "detail")
    assert (answer.returncode, answer.stdout) == (0, '{"n": 7, "data": null}\n'), answer.stderr


def test_try_shows_how_a_handler_fails(counting: Site, file: str) -> None:
    answer = shoal("try", file, f"{counting.url}/7", "--to", "wrong")
    assert answer.returncode == 1
    assert "Traceback (most recent call last):" in answer.stderr
    last = answer.stderr.splitlines()[-1]
    assert last.startswith(
        "shoal: The handler 'wrong' failed: AttributeError: 'NoneType' object has no attribute 'strip'"
    )
    assert "(shop.py:17 in wrong)" in last
    dropped = shoal("try", file, f"{counting.url}/7", "--to", "unwanted")
    assert (dropped.returncode, "failed: it raised Drop: sold out." in dropped.stderr) == (1, True)
    gone = shoal("try", file, f"{counting.url}/gone")
    assert (gone.returncode, "There is no page for 'listing (default)': HTTP 404" in gone.stderr) == (1, True)


def test_a_saved_page_is_a_fixture_for_tests(counting: Site, file: str) -> None:
    words = ("try", file, f"{counting.url}/7", "--to", "detail", "--data", "[1]", "--save-page", "seven.html")
    assert shoal(*words).returncode == 0
    page = load_page("seven.html")
    assert (page.url, page.status, page.text("h1"), page.data) == (f"{counting.url}/7", 200, "7", [1])
    assert page.headers["content-type"] == "text/html"
    refused = shoal(*words)
    assert (refused.returncode, "'seven.html' exists already" in refused.stderr) == (2, True)
    assert shoal(*words, "--replace").returncode == 0
    Path("seven.html.json").write_text("{}")
    with pytest.raises(UsageError, match="does not describe a saved page"):
        load_page("seven.html")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["try", "shop.py", "{url}/", "--to", "detial"], "has no handler 'detial'; did you mean 'detail'?"),
        (["try", "shop.py", "not a url"], "'not a url' cannot be fetched: "),
        (["try", "shop.py", "{url}/", "--data", "{{"], "--data must be JSON"),
        (["fetch", "ftp://host/"], "'ftp://host/' cannot be fetched: "),
        (["fetch", "{url}/", "-H", "nonsense"], "is no header; write it as -H 'Name: value'."),
        (["shell", "{url}/", "{url}/1"], "takes one TARGET, one URL, or one of each."),
    ],
)
def test_a_mistake_is_one_sentence(counting: Site, file: str, words: list[str], sentence: str) -> None:
    answer = shoal(*(word.format(url=counting.url) for word in words))
    assert (answer.returncode, answer.stdout, answer.stderr.count("\n")) == (2, "", 1)
    assert sentence in answer.stderr
    assert counting.seen == []


def test_fetch_shows_each_request_and_no_secret(counting: Site, file: str) -> None:
    url = counting.url.replace("//", "//me:secret@")
    answer = shoal("fetch", f"{url}/7", "--target", file, "-H", "X-Own: 1", "-H", "Authorization: Bearer private")
    assert answer.returncode == 0
    assert "1  GET" in answer.stdout
    assert "HTTP 200, 10 B: connect" in answer.stdout
    assert "> X-Own: 1" in answer.stdout
    assert "robots.txt  allowed" in answer.stdout
    assert not [word for word in ("hidden", "secret", "private") if word in answer.stdout]
    missing = shoal("fetch", f"{counting.url}/gone", "--json")
    assert (missing.returncode, json.loads(missing.stdout)["status"]) == (1, 404)
    assert shoal("fetch", f"{counting.url}/7", "--body").stdout == "<h1>7</h1>"


def test_a_shell_has_the_page_and_can_fetch_more(counting: Site, file: str) -> None:
    typed = (
        'text("h1")',
        'len(css("a"))',
        'fetch(follow("a", to="detail"))',
        'list(scraper.handler("detail").function(page))',
    )
    answer = script("shell", file, given="\n".join((*typed, "page.url", "")))
    assert answer.returncode == 0, answer.stderr
    for shown in (
        "'0'",
        "40",
        f"<Page 200 {counting.url}/1 (10 bytes)>",
        f"'{counting.url}/1'",
        "[{'n': 1, 'data': None}]",
    ):
        assert shown in answer.stdout
    assert counting.seen == ["/robots.txt", "/", "/1"], "robots.txt once, for both pages"


# How polite it is


def test_a_site_that_crawls_of_the_store_leave_alone_is_left_alone(counting: Site, file: str) -> None:
    Path("shoal.toml").write_text("[scrapers.books]\ndelay = 3600\nobey_robots = false\n")
    assert shoal("run", file, "--url", f"{counting.url}/gone", "--quiet").returncode == 1
    answer = shoal("fetch", f"{counting.url}/7")
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert re.search(r"is to be left alone for another (59m|1h)", answer.stderr)
    assert counting.seen == ["/gone"]


async def tried(url: str, **options: Any) -> Tried:
    scraper = Scraper("page", **({"delay": 0} | options))
    with opened_trial(Settings(engine="sqlite:///nowhere/none.db"), scraper) as trial:
        return await trial.fetch(Request(url))


async def test_robots_are_obeyed_unless_the_scraper_says_otherwise(site: HostileSite) -> None:
    site.robots["127.0.0.1"] = RobotsKind.DISALLOW_PRIVATE
    refused = await tried(site.url("/private/x"))
    assert (refused.page, refused.reason) == (None, "robots.txt disallows it")
    assert [entry.path for entry in site.log] == ["/robots.txt"]
    assert report(refused, "Agent", obeyed=True)["robots"] == "disallowed"
    assert (await tried(site.url("/private/x"), obey_robots=False)).page is not None


async def test_redirects_are_shown_hop_by_hop(site: HostileSite) -> None:
    came = await tried(site.url("/redirect/2"))
    told = report(came, "Agent", obeyed=True)
    assert [each["status"] for each in told["requests"] if not each["robots_file"]] == [302, 302, 200]
    assert came.page is not None
    assert told["final_url"] == came.page.url


@pytest.mark.parametrize("path", ["/status/429", "/status/503", "/status/500", "/status/404"])
async def test_the_first_answer_is_the_answer(site: HostileSite, path: str) -> None:
    came = await tried(site.url(path))
    assert came.page is None
    assert came.reason is not None
    assert path[-3:] in came.reason
    assert came.answer is not None
    assert came.answer.status == int(path[-3:])
    assert [entry.path for entry in site.log].count(path) == 1


async def test_a_site_that_is_down_is_not_waited_for() -> None:
    came = await tried("http://127.0.0.1:1/")
    assert came.page is None
    assert came.reason is not None
    assert "refused" in came.reason


async def test_pages_of_one_trial_keep_the_delay(site: HostileSite) -> None:
    with opened_trial(Settings(engine="sqlite:///nowhere/none.db"), Scraper("page", delay=0.3)) as trial:
        for number in range(2):
            await trial.fetch(Request(site.url(f"/html/{number}")))
    starts = [entry.started for entry in site.log]
    assert len(starts) == 3
    assert all(later - earlier >= 0.3 for earlier, later in itertools.pairwise(starts))

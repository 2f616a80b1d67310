"""Routes: what a URL looks like decides where and how long it waits, how soon it goes, and at what pace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from shoal import Page, Request, Route, Scraper
from shoal.api.routes import Routed, Routes
from shoal.config.apply import configure
from shoal.config.load import load
from shoal.core import log_events
from shoal.core.lanes import LANES
from shoal.core.notes import Entry
from shoal.core.task import Kind, NewTask
from shoal.core.url import site_of
from shoal.errors import BadScraper, BadSettings
from shoal.frontier.contract.exits import NewExit
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.intake.admission import to_task
from shoal.testing.hostile_site import HostileSite
from support.command_line import shoal
from support.working import crawl, reader, start_run

NEWS = "https://news.example/live/1?a=/b"


def routed(url: str, *routes: Route) -> Routed | None:
    return Routes(routes, LANES, "bulk").find(url, site_of(url))


def matches(url: str, **conditions: Any) -> bool:
    return routed(url, Route(**conditions)) is not None


def task_of(request: Request, *routes: Route, **options: Any) -> NewTask:
    scraper = Scraper("books", routes=routes, **options)
    scraper.page(lambda page: None)
    task = to_task(request, scraper)
    assert isinstance(task, NewTask)
    return task


@pytest.mark.parametrize(
    ("conditions", "matching", "others"),
    [
        ({"host": "news.example"}, [NEWS, "http://a.news.example/", "https://news.example:81/"],
         ["https://fakenews.example/", "https://news.example.org/"]),
        ({"host": "NEWS.example"}, [NEWS], []),
        ({"host": "news.example:81"}, ["https://news.example:81/"], [NEWS]),
        ({"host": "*.news.example"}, ["http://a.news.example/"], [NEWS, "https://x.example/.news.example"]),
        ({"host": "news.*"}, [NEWS, "https://news.org/"], ["https://www.news.org/"]),
        ({"host": "*"}, [NEWS], []),
        ({"path": "/live/*"}, [NEWS], ["https://news.example/live", "https://x.example/?/live/"]),
        ({"path": "*.html"}, ["https://x.example/a/b.html?c=d"], ["https://x.example/?a.html"]),
        ({"regex": "news|live"}, [NEWS, "https://x.example/?q=live"], ["https://x.example/"]),
        ({"regex": re.compile("NEWS", re.IGNORECASE)}, [NEWS], ["https://x.example/"]),
        ({"host": "news.example", "path": "/live/*", "regex": r"a=/b$"}, [NEWS],
         ["https://news.example/live/1", "https://x.example/live/1?a=/b"]),
    ],
)  # fmt: skip
def test_conditions(conditions: Any, matching: list[str], others: list[str]) -> None:
    assert [url for url in [*matching, *others] if matches(url, **conditions)] == matching


def test_the_first_that_matches_decides_alone() -> None:
    routes = [Route(path="/live/*", lane="priority"), Route(host="news.example", ttl=60), Route(host="*", priority=3)]
    assert routed(NEWS, *routes) == Routed("priority", None, None)
    assert routed("https://news.example/", *routes) == Routed(None, 60_000, None)
    assert routed("https://x.example/", *routes) == Routed(None, None, 3)


def test_more_sites_than_are_remembered_are_no_matter() -> None:
    routes = Routes([Route(host="s1.example", delay=1)], LANES, "bulk", remembered=2)
    for number in (0, 1, 2, 3, 1, 0):
        assert routes.delay_of(f"s{number}.example") == (1000 if number == 1 else None)
    assert len(routes._by_site) <= 2


def test_a_route_says_what_the_request_does_not() -> None:
    route = Route(host="news.example", lane="priority", ttl=1800, priority=5)
    task = task_of(Request(NEWS), route)
    assert (task.lane, task.ttl, task.priority) == ("priority", 1_800_000, 5)
    own = task_of(Request(NEWS, lane="bulk", ttl=1, priority=0), route)
    assert (own.lane, own.ttl, own.priority) == ("bulk", 1000, 0)
    elsewhere = task_of(Request("https://x.example/"), route)
    assert (elsewhere.lane, elsewhere.ttl, elsewhere.priority) == ("bulk", None, 0)


def test_files_keep_their_lane_and_sitemaps_all() -> None:
    route = Route(host="news.example", lane="priority", ttl=1800, priority=5)
    file = task_of(Request(NEWS, kind=Kind.FILE), route)
    assert (file.lane, file.ttl, file.priority) == ("files", 1_800_000, 5)
    sitemap = task_of(Request(NEWS, kind=Kind.SITEMAP), route)
    assert (sitemap.lane, sitemap.ttl, sitemap.priority) == ("bulk", None, 0)


def test_exits_are_for_whatever_is_fetched() -> None:
    route = Route(host="news.example", exits="far")
    for kind in (Kind.PAGE, Kind.FILE, Kind.SITEMAP):
        assert task_of(Request(NEWS, kind=kind), route).pool == "far"
        assert task_of(Request("https://x.example/", kind=kind), route).pool is None


def test_browser_or_not_is_a_matter_of_lanes() -> None:
    assert task_of(Request(NEWS), Route(host="*", browser=True)).lane == "browser"
    assert task_of(Request(NEWS), Route(host="*", browser=False), browser=True).lane == "bulk"
    assert task_of(Request(NEWS), Route(host="*", browser=False), lane="priority").lane == "priority"
    assert task_of(Request(NEWS), Route(host="*", ttl=1), browser=True).lane == "browser"


def test_the_delay_is_that_of_the_first_route_for_the_whole_site() -> None:
    routes = Routes(
        [Route(host="a.example", path="/live/*", lane="priority"), Route(host="calm.example"),
         Route(host="*.example", delay=5)],
        LANES, "bulk",
    )  # fmt: skip
    assert [routes.delay_of(f"{host}.example") for host in ("a", "calm", "b")] == [5000, None, 5000]
    assert routes.delay_of("x.org") is None


@pytest.mark.parametrize(
    ("route", "sentence"),
    [
        (Route(lane="priority"), "it has neither host nor path nor regex"),
        (Route(regex="("), "'(' is not a regular expression: missing ), unterminated subpattern at position 0"),
        (Route(regex=5), "5 is not a regular expression"),  # type: ignore[arg-type]
        (Route(host="https://x.example/"), "'https://x.example/' is not a host"),
        (Route(host=""), "'' is not a host"),
        (Route(path="live/*"), "the path 'live/*' does not begin with / or *"),
        (Route(host="*", lane="prioritty"), "pages cannot wait in the lane 'prioritty'; the lanes are priority, bulk"),
        (Route(host="*", lane="files"), "pages cannot wait in the lane 'files'"),
        (Route(host="*", ttl=-1), "ttl = -1 is not a number of seconds"),
        (Route(host="*", ttl=0), "ttl = 0 is not a number of seconds"),
        (Route(host="*", delay=-0.5), "delay = -0.5 is not a number of seconds"),
        (Route(host="*", delay=float("nan")), "delay = nan is not a number of seconds"),
        (Route(host="*", ttl=1e20), "ttl = 1e+20 is not a number of seconds, or a text such as"),
        (Route(host="*", delay=10**400), "is not a number of seconds"),
        (Route(path="/*", delay=5), "delay is the pace of a whole site"),
        (Route(host="*", regex="x", delay=5), "delay is the pace of a whole site"),
        (Route(host="*", priority=10**9), "priority = 1000000000 is not a whole number"),
        (Route(host="*", lane="bulk", browser=True), "it has a lane and browser"),
        (Route(host="*", exits=" "), "exits = ' ' is not the name of a pool"),
        (Route(host="*", exits=5), "exits = 5 is not the name of a pool"),  # type: ignore[arg-type]
        (Route(host="*", browser="yes"), "browser = 'yes' is neither True nor False"),  # type: ignore[arg-type]
    ],
)
def test_a_route_that_cannot_be_used_is_named(route: Route, sentence: str) -> None:
    with pytest.raises(BadScraper) as wrong:
        Scraper("books", routes=[Route(host="*"), route])
    assert str(wrong.value).startswith("Scraper 'books': route 2: ")
    assert sentence in str(wrong.value)


@pytest.mark.parametrize("value", [5, "news", [{"host": "*"}]])
def test_routes_are_a_list_of_routes(value: Any) -> None:
    with pytest.raises(BadScraper, match="routes must be a list of Routes"):
        Scraper("books", routes=value)


# In shoal.toml


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_three_lines_of_settings_send_news_ahead(folder: Path) -> None:
    (folder / "shoal.toml").write_text('[[route]]\nregex = "news|live"\nlane = "priority"\nttl = "30m"\n')
    scraper = reader("books", routes=[Route(host="*", lane="bulk", ttl=5)])
    for _ in range(2):
        configure(scraper, load())
    task = to_task(Request(NEWS), scraper)
    assert isinstance(task, NewTask)
    assert (task.lane, task.ttl) == ("priority", 1_800_000)
    other = to_task(Request("https://x.example/"), scraper)
    assert isinstance(other, NewTask)
    assert (other.lane, other.ttl) == ("bulk", 5000)


def test_a_route_may_be_for_one_scraper_and_for_a_lane_of_the_settings(folder: Path) -> None:
    (folder / "shoal.toml").write_text(
        '[lanes.slow]\nttl = 9\n[[route]]\nscraper = "books"\nhost = "*"\nlane = "slow"\n'
    )
    lanes = []
    for name in ("books", "films"):
        scraper = reader(name)
        configure(scraper, load())
        task = to_task(Request(NEWS), scraper)
        assert isinstance(task, NewTask)
        lanes.append(task.lane)
    assert lanes == ["slow", "bulk"]


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ('host = "*"\nlanne = "x"', "shoal.toml, line 5: route 2 has no setting 'lanne'; did you mean 'lane'?"),
        ('regex = "("', "shoal.toml, line 3: route 2 cannot be used: '(' is not a regular expression: missing )"),
        ('lane = "bulk"', "shoal.toml, line 3: route 2 cannot be used: it has neither host nor path nor regex"),
        ('host = "*"\nttl = -5', "shoal.toml, line 5: route 2: ttl = -5 cannot be used: input should be greater"),
        ('host = "*"\nttl = "soon"', "shoal.toml, line 5: route 2: ttl = 'soon' cannot be used: a length of time is"),
        ('host = "*"\nlane = "fast"', "shoal.toml: route 2 cannot be used: pages cannot wait in the lane 'fast'"),
        ('host = "*"\nexits = ""', "shoal.toml, line 5: route 2: exits = '' cannot be used"),
        ('path = "/*"\ndelay = 5', "shoal.toml, line 3: route 2 cannot be used: delay is the pace of a whole site"),
    ],
)
def test_a_broken_route_is_one_sentence_with_file_and_rule_and_exit_2(folder: Path, lines: str, sentence: str) -> None:
    (folder / "shoal.toml").write_text(f'[[route]]\nhost = "a"\n[[route]]\n{lines}\n')
    (folder / "books.py").write_text("from shoal import Scraper\nx = Scraper('x')\nx.page(lambda page: None)\n")
    answer = shoal("run", "books.py", "--url", "http://127.0.0.1:1/")
    assert answer.returncode == 2
    assert sentence in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert not (folder / "shoal.db").exists()


def test_a_broken_route_of_the_environment_is_named_as_such(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_ROUTE", '[{"host": "*", "ttl": -1}]')
    with pytest.raises(BadSettings, match=r"^environment \(SHOAL_ROUTE"):
        load()


# At work


@pytest.mark.parametrize(
    "options",
    [
        {"delay": 0.05},
        {"delay": 0.05, "obey_robots": False},
        {"delay": 0.0, "concurrency": 4},
        {"delay": 0.0, "concurrency": 4, "obey_robots": False},
    ],
)
async def test_a_site_with_a_delay_of_its_own_is_slower_as_the_target_sees_it(
    engine: SqliteEngine, site: HostileSite, options: dict[str, Any]
) -> None:
    scraper = Scraper("paced", **{"obey_robots": True, **options}, routes=[Route(host="127.0.0.2", delay=0.3)])

    @scraper.page
    def read(page: Page) -> dict[str, str]:
        return {"url": page.url}

    paths = [f"/site/9/p/{number}" for number in range(1, 5)]
    urls = [site.url(path, host=host) for host in ("127.0.0.1", "127.0.0.2") for path in paths]
    done = await crawl(engine, scraper, urls=urls)
    assert len(done.items) == len(urls)
    slow, fast = (site.log.filter(host=host).smallest_gap() for host in ("127.0.0.2", "127.0.0.1"))
    print(f"{options}: smallest gap {slow:.3f} s with the route, {fast:.3f} s without")
    assert slow >= 0.3


async def test_what_a_route_sends_by_other_exits_comes_from_there(engine: SqliteEngine, site: HostileSite) -> None:
    """Pages, robots.txt before them, and the page of another site that a redirect leads to."""
    exits = {
        name: NewExit(name, f"source://{name}", (pool,))
        for name, pool in (("127.0.0.7", "default"), ("127.0.0.8", "far"))
    }
    far = site.url("/json", host="127.0.0.2")
    urls = [site.url("/json"), site.url(f"/redirect-to?url={far}"), site.url("/site/3/", host="127.0.0.2")]
    scraper = reader(obey_robots=True, routes=[Route(host="127.0.0.2", exits="far")])
    crawled = await crawl(engine, scraper, urls=urls, exits=exits)
    assert (crawled.counters.dead, len(crawled.items)) == (0, 3)
    peers = {host: {entry.peer for entry in site.log if entry.host == host} for host in ("127.0.0.1", "127.0.0.2")}
    assert peers == {"127.0.0.1": {"127.0.0.7"}, "127.0.0.2": {"127.0.0.8"}}
    assert len(site.log.filter(host="127.0.0.2")) == 3


async def test_a_route_by_exits_that_are_not_there_is_told(engine: SqliteEngine, site: HostileSite) -> None:
    """The rest is fetched, and what it sends there waits for another worker, or for exits that are added."""
    scraper = reader(routes=[Route(path="/json", exits="far")])
    with capture_logs() as logs:
        await crawl(engine, scraper, urls=[site.url("/site/3/")])
    assert [entry["pool"] for entry in logs if entry["event"] == log_events.EXIT_MISSING] == ["far"]


async def test_a_robots_txt_that_no_longer_asks_for_a_delay_is_believed(
    engine: SqliteEngine, site: HostileSite
) -> None:
    async def delay() -> int:
        (record,) = await engine.reader.sites()
        return record.delay

    scraper = reader(obey_robots=True)
    site.robots["127.0.0.1"] = "User-agent: *\nCrawl-delay: 0.2\n"
    await crawl(engine, scraper, "first", urls=[site.url("/json")])
    await start_run(engine, scraper, "second", urls=[site.url("/json")])
    assert await delay() == 200
    site.robots["127.0.0.1"] = "User-agent: *\nDisallow:\n"
    await engine.cache.put([Entry(f"robots:http://127.0.0.1:{site.port}", b"", 1)])
    await crawl(engine, scraper, "second")
    await start_run(engine, scraper, "third", urls=[site.url("/json")])
    assert await delay() == 0
    assert site.log.counts()["/robots.txt"] == 2


@pytest.mark.parametrize("route", ['lane = "browser"', "browser = true"])
def test_a_route_to_workers_that_do_not_exist_is_refused_at_the_start(folder: Path, route: str) -> None:
    (folder / "shoal.toml").write_text(f'[[route]]\npath = "/site/9/p/*"\n{route}\n')
    (folder / "x.py").write_text(
        "from shoal import Scraper\nx = Scraper('x', delay=0, obey_robots=False)\n"
        "@x.page\ndef read(page):\n    yield from page.follow('a')\n"
    )
    answer = shoal("run", "x.py", "--url", "http://127.0.0.1:9/site/9/")
    sentence = (
        "A route of the scraper 'x' leads to the lane 'browser': browser workers are not part of this version yet."
    )
    assert (answer.returncode, answer.stderr) == (2, f"shoal: {sentence}\n")

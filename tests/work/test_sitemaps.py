"""Sitemaps as tasks: fetched like pages, what they list let in once, in bounded memory; and `shoal sitemap`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal import Page, Scraper, Sitemap
from shoal.api.request import Request
from shoal.api.sitemap import SitemapOrder, since_moment
from shoal.core.task import Kind
from shoal.errors import BadScraper
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile.sitemaps import SITEMAP_DATES
from shoal.testing.hostile_site import HostileSite
from shoal.work.task import read_sitemap
from support.command_line import shoal
from support.crawling import SITEMAP_SCRAPER, killed_in_the_middle, site_process, stats
from support.working import crawl, reader


def listing(pages: int) -> set[str]:
    return {"/site/%d/%s" % (pages, f"p/{number}" if number else "") for number in range(pages)}  # noqa: UP031


def paths(crawled: Any) -> Counter[str]:
    return Counter("/" + item["url"].split("/", 3)[3] for item in crawled.items)


@pytest.mark.parametrize("kind", ["urls", "gzip", "text", "rss", "atom", "news", "images", "broken", "cut"])
async def test_every_kind_of_sitemap_leads_to_its_pages(engine: SqliteEngine, site: HostileSite, kind: str) -> None:
    done = await crawl(engine, reader(sitemaps=site.url(f"/sitemap/{kind}/5")))
    assert paths(done) == Counter(listing(5))
    assert (done.counters.done, done.counters.dead, done.counters.remaining) == (6, 0, 0)


async def test_indexes_are_followed_loops_are_not(engine: SqliteEngine, site: HostileSite) -> None:
    starts = [site.url("/sitemap/index/4/20"), site.url("/sitemap/loop"), site.url("/sitemap/urls/20")]
    done = await crawl(engine, reader(sitemaps=starts, start=site.url("/site/20/")))
    assert paths(done) == Counter(listing(20) | listing(3))
    counts = Counter(site.log.counts())
    assert counts["/sitemap/loop"] == 1
    assert counts["/site/20/"] == 1


async def test_nesting_is_bounded_in_depth_and_number(engine: SqliteEngine, site: HostileSite) -> None:
    deep = await crawl(engine, reader(sitemaps=site.url("/sitemap/deep/0")))
    assert deep.counters.done == read_sitemap.MOST_NESTED + 1
    assert deep.counters.refused == 1
    four = msgspec.to_builtins(SitemapOrder(files=4))
    many = await crawl(
        engine, reader(start=Request(site.url("/sitemap/index/9/9"), data=four, kind=Kind.SITEMAP)), "many"
    )
    assert sum(count for path, count in site.log.counts().items() if "/part/" in path) == 4
    assert len(many.items) == 4


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("bomb", "unreadable sitemap: it is neither XML nor a list of URLs"),
        ("entities", "unreadable sitemap: it declares entities"),
        ("external", "unreadable sitemap: it declares entities"),
        ("html", "unreadable sitemap: it is not a sitemap but an HTML page"),
        ("none", "HTTP 400"),
    ],
)
async def test_what_cannot_be_read_is_a_dead_letter_with_the_reason(
    engine: SqliteEngine, site: HostileSite, kind: str, reason: str
) -> None:
    done = await crawl(engine, reader(sitemaps=site.url(f"/sitemap/{kind}")))
    assert done.only_death.reason.text.startswith(reason)
    assert done.only_death.attempts == 1


async def test_what_was_read_before_the_end_counts(engine: SqliteEngine, site: HostileSite) -> None:
    good = "".join(f"<url><loc>/site/3/p/{number}</loc></url>" for number in (1, 2))
    site.pages["/harm.xml"] = f"<urlset>{good}{'<a>' * 99}"
    done = await crawl(engine, reader(sitemaps=site.url("/harm.xml")))
    assert set(paths(done)) == {"/site/3/p/1", "/site/3/p/2"}
    assert done.only_death.reason.text.endswith("nested more than 32 deep; the 2 entries before that were taken")


async def test_a_sitemap_is_retried_and_redirected_like_a_page(engine: SqliteEngine, site: HostileSite) -> None:
    elsewhere = site.url("/sitemap/urls/3", host="127.0.0.2")
    starts = [
        site.url("/flaky/1/x"),
        site.url(f"/redirect-to?url={elsewhere}"),
        site.url("/redirect-to?url=/sitemap/text/2"),
    ]
    done = await crawl(engine, reader(sitemaps=starts))
    assert set(paths(done)) == listing(3) | listing(2)
    assert done.counters.retries == 1
    assert done.dead.keys() == {"/flaky/1/x"}


async def test_robots_txt_names_sitemaps_and_lets_them_be_fetched(engine: SqliteEngine, site: HostileSite) -> None:
    named = site.url("/sitemap/urls/4", host="127.0.0.1")
    site.robots["127.0.0.1"] = f"User-agent: *\nDisallow: /sitemap/\nSitemap: {named}\n"
    scraper = reader(sitemaps=[site.url("/robots.txt"), site.url("/sitemap/urls/5")], obey_robots=True)
    done = await crawl(engine, scraper)
    assert set(paths(done)) == listing(4)
    assert done.counters.dropped == 1, "the sitemap that is not named is disallowed"
    assert site.log.counts()["/robots.txt"] == 1


@pytest.mark.parametrize("obey", [True, False])
async def test_true_means_what_the_robots_txt_of_each_start_names(
    engine: SqliteEngine, site: HostileSite, obey: bool
) -> None:
    site.robots["127.0.0.1"] = f"Sitemap: {site.url('/sitemap/urls/4')}\nSitemap: /sitemap/text/2"
    starts = [site.url("/json"), site.url("/empty"), site.url("/json", host="127.0.0.2"), "nonsense"]
    done = await crawl(engine, reader(start=starts, sitemaps=True, obey_robots=obey))
    assert set(paths(done)) == {"/json", "/empty"} | listing(4) | listing(2)
    assert site.log.counts()["/robots.txt"] == 2


async def test_only_what_is_new_enough_or_has_no_date(engine: SqliteEngine, site: HostileSite) -> None:
    site.pages["/index.xml"] = (
        "<sitemapindex><sitemap><loc>/old.xml</loc><lastmod>2019</lastmod></sitemap>"
        "<sitemap><loc>/sitemap/urls/6</loc><lastmod>2025-01-01</lastmod></sitemap></sitemapindex>"
    )
    done = await crawl(engine, reader(sitemaps=[Sitemap(site.url("/index.xml"), since="2024-01-01")]))
    assert set(paths(done)) == {f"/site/6/p/{number}" for number in (1, 3, 5)}
    assert "/old.xml" not in site.log.counts()
    undated = await crawl(
        engine, reader(sitemaps=[Sitemap(site.url("/sitemap/text/2"), since="2024-01-01")]), "undated"
    )
    assert set(paths(undated)) == listing(2)


async def test_pages_go_to_the_handler_that_was_named_with_what_is_known_of_them(
    engine: SqliteEngine, site: HostileSite
) -> None:
    scraper = Scraper("test", delay=0, obey_robots=False, sitemaps=[
        Sitemap(site.url("/sitemap/urls/4"), to="detail", lastmod=True, newest_first=True),
    ])  # fmt: skip

    @scraper.page("detail")
    def detail(page: Page) -> dict[str, Any]:
        assert page.request is not None
        return {"url": page.url, **page.data, "priority": page.request.priority, "depth": page.depth}

    done = await crawl(engine, scraper)
    new, old = done.items[0], done.items[-1]
    assert [new["lastmod"], old["lastmod"]] == ["2024-06-30T12:00:00+02:00", "2020-01-01"]
    assert new["priority"] > old["priority"] > 0
    assert (new["sitemap"], new["depth"]) == (site.url("/sitemap/urls/4"), 0)


async def test_media_are_downloads_only_if_asked_for(engine: SqliteEngine, site: HostileSite) -> None:
    asked = [Sitemap(site.url("/sitemap/images/3"), media=True)]
    done = await crawl(engine, reader(sitemaps=asked))
    assert done.counters.refused == 3, "until there are file workers"
    assert (await crawl(engine, reader(sitemaps=[site.url("/sitemap/images/3")]), "without")).counters.refused == 0


async def test_what_a_sitemap_lists_is_held_against_allow(engine: SqliteEngine, site: HostileSite) -> None:
    site.pages["/map.xml"] = "http://127.0.0.2:1/outside\nhttps://[x/y\n" + site.url("/json")
    done = await crawl(engine, reader(sitemaps=site.url("/map.xml"), allow=["127.0.0.1/json"]))
    assert set(paths(done)) == {"/json"}
    assert done.counters.refused == 2


def test_since_is_a_date_or_a_time_before_now() -> None:
    now = int(datetime(2026, 5, 8, tzinfo=UTC).timestamp() * 1000)
    first = int(datetime(2026, 5, 1, tzinfo=UTC).timestamp() * 1000)
    for since in ("7d", "168h", "1w", timedelta(days=7), date(2026, 5, 1), "2026-05-01", "2026-05-01T02:00+02:00"):
        assert since_moment(since, now) == first


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (5, "sitemaps must be a list of URLs, not 5"),
        ([b"x"], "sitemaps must be a list of URLs, not b'x'"),
        ([Sitemap("https://x.example/", since="soon")], "since of a sitemap must be a date such as"),
    ],
)
def test_a_wrong_option_is_one_clear_sentence(value: Any, sentence: str) -> None:
    with pytest.raises(BadScraper, match=r"^Scraper 'test'") as wrong:
        reader(sitemaps=value)
    assert sentence in str(wrong.value)


# On the command line


@pytest.mark.parametrize(("large", "room"), [(15, 8_000), pytest.param(50, 20_000, marks=pytest.mark.proof)])
def test_a_large_sitemap_is_read_in_constant_memory(tmp_path: Path, large: int, room: int) -> None:
    """Only the newest pages are wanted: none. What grows with the file would show in the peak, which is in kB."""
    measured = (
        "import sys, re; from shoal.cli.output.exit_codes import framed; from shoal.cli.main import app; "
        "code = framed(app, sys.argv[1:]); "
        "print(code, *re.findall(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read()))"
    )
    with site_process(tmp_path) as (port, _):
        peaks = []
        for megabytes in (1, large):
            file = tmp_path / "big.py"
            url = f"http://127.0.0.1:{port}/sitemap/big/{megabytes}"
            file.write_text(SITEMAP_SCRAPER.format(sitemaps=Sitemap(url, since="2030-01-01"), allow=None))
            command = [sys.executable, "-c", measured, "run", str(file), "--quiet"]
            code, peak = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, check=True).stdout.split()
            assert code == b"0"
            peaks.append(int(peak))
            assert stats(tmp_path)["received"] >= megabytes * 10**6
    print(f"peak of 1 MB: {peaks[0]} kB, of {large} MB: {peaks[1]} kB")
    assert peaks[1] < peaks[0] + room


def test_a_kill_in_the_middle_of_a_sitemap_loses_nothing(tmp_path: Path) -> None:
    killed_in_the_middle(tmp_path)


@pytest.fixture
def folder(own_folder: Path) -> Path:
    (own_folder / "shoal.toml").write_text("[scrapers.sitemap]\ndelay = 0\n")
    return own_folder


def test_the_command_prints_what_a_sitemap_lists(folder: Path) -> None:
    with site_process(folder) as (port, _):
        site = f"http://127.0.0.1:{port}"
        plain = shoal("sitemap", f"{site}/sitemap/index/2/4")
        assert plain.returncode == 0, plain.stderr
        lines = dict(line.split("\t") for line in plain.stdout.splitlines())
        assert set(lines) == {site + path for path in listing(4)}
        assert set(lines.values()) == set(SITEMAP_DATES)
        assert shoal("sitemap", f"{site}/sitemap/text/2").stdout == f"{site}/site/2/\n{site}/site/2/p/1\n"
        new = shoal("sitemap", f"{site}/sitemap/urls/4", "--since", "2024-01-01", "--json")
        assert [json.loads(line)["url"] for line in new.stdout.splitlines()] == [
            f"{site}/site/4/p/1",
            f"{site}/site/4/p/3",
        ]
        few = shoal("sitemap", f"{site}/sitemap/big/5", "--limit", "3", "-o", "few.txt")
        assert (few.returncode, few.stdout) == (0, "")
        assert len((folder / "few.txt").read_text().splitlines()) == 3
        assert not (folder / "shoal.db").exists()


def test_the_command_says_what_is_wrong(folder: Path) -> None:
    with site_process(folder) as (port, _):
        site = f"http://127.0.0.1:{port}"
        html = shoal("sitemap", f"{site}/sitemap/html")
        assert html.returncode == 1
        assert f"shoal: {site}/sitemap/html: unreadable sitemap: it is not a sitemap but an HTML page." in html.stderr
        broken = shoal("sitemap", f"{site}/sitemap/broken/4")
        assert (broken.returncode, len(broken.stdout.splitlines())) == (0, 4)
        assert "line 5: mismatched tag" in broken.stderr
        root = shoal("sitemap", site)
        assert (root.returncode, root.stdout) == (0, "")
        assert "robots.txt names no sitemap" in root.stderr
    for arguments, sentence in (
        (("nonsense",), "The URL 'nonsense' was refused: it does not begin with http"),
        ((site, "--since", "soon"), "--since must be a date such as"),
        ((site, "-o", "nowhere/x"), "of the output does not exist"),
    ):
        wrong = shoal("sitemap", *arguments)
        assert wrong.returncode == 2
        assert sentence in wrong.stderr
        assert "Traceback" not in wrong.stderr


def _index(*urls: str) -> str:
    return f"<sitemapindex>{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>"


class TestAllowBindsSitemapFiles:
    """Those that others name; what the scraper itself names is what its author typed."""

    async def test_named_by_an_index(self, engine: SqliteEngine, site: HostileSite) -> None:
        away = site.url("/sitemap/urls/3", host="127.0.0.2")
        site.pages["/index.xml"] = _index(away, site.url("/sitemap/urls/2"))
        site.robots["127.0.0.1"] = site.robots["127.0.0.2"] = "User-agent: *\nAllow: /\n"
        done = await crawl(engine, reader(sitemaps=site.url("/index.xml"), allow=["127.0.0.1"], obey_robots=True))
        assert set(paths(done)) == listing(2)
        assert len(site.log.filter(host="127.0.0.2")) == 0, "not even its robots.txt"
        assert (done.counters.refused, done.counters.dead) == (1, 0)

    async def test_named_by_robots_txt(self, engine: SqliteEngine, site: HostileSite) -> None:
        away = site.url("/sitemap/urls/3", host="127.0.0.2")
        site.robots["127.0.0.1"] = f"Sitemap: {away}\nSitemap: {site.url('/sitemap/urls/2')}\n"
        done = await crawl(engine, reader(sitemaps=site.url("/robots.txt"), allow=["127.0.0.1"]))
        assert set(paths(done)) == listing(2)
        assert len(site.log.filter(host="127.0.0.2")) == 0
        assert done.counters.refused == 1

    async def test_where_a_redirect_leads(self, engine: SqliteEngine, site: HostileSite) -> None:
        away = site.url("/sitemap/urls/3", host="127.0.0.2")
        start = site.url(f"/redirect-to?url={away}")
        done = await crawl(engine, reader(sitemaps=start, allow=["127.0.0.1"]))
        assert len(site.log.filter(host="127.0.0.2")) == 0
        assert (done.counters.dropped, done.items) == (1, [])

    async def test_what_was_typed_is_allowed_and_so_is_what_it_names_on_its_own_host(
        self, engine: SqliteEngine, site: HostileSite
    ) -> None:
        """`allow` says which pages are wanted: it need not say where their lists are."""
        listed = "".join(f"<url><loc>{site.url(path)}</loc></url>" for path in listing(3))
        site.pages["/part.xml"] = f"<urlset>{listed}</urlset>"
        site.pages["/index.xml"] = _index("/part.xml")
        start = site.url("/index.xml", host="127.0.0.2")
        done = await crawl(engine, reader(sitemaps=start, allow=["127.0.0.1/site/3/p/"]))
        assert set(paths(done)) == listing(3) - {"/site/3/"}
        assert done.counters.refused == 1, "the page that is not below the path"

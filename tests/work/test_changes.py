"""The record of changes as people and programs read it, and runs that go on until they are stopped."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal import Orchestrator
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.html.content import content_hash
from shoal.errors import BadScraper, UsageError
from shoal.insight.changes import cursor_of, places_of
from shoal.testing.access_log import AccessLog
from support.command_line import SHOAL, shoal
from support.crawling import site_process, wait_for

SCRAPER = """
from shoal import Scraper

watch = Scraper("watch", start={start!r}, delay=0.01, obey_robots=False, {options})


@watch.page
def read(page):
    return {{"h1": page.text("h1"), "unchanged": page.unchanged}}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    monkeypatch.chdir(tmp_path)
    with site_process(tmp_path) as (port, log):
        yield f"http://127.0.0.1:{port}", log


def write(folder: Path, start: list[str], options: str = "changes=True") -> None:
    (folder / "watch.py").write_text(SCRAPER.format(start=start, options=options))


def changes(*words: str) -> tuple[list[tuple[str, str]], str, bool]:
    answer = shoal("changes", *words, "--json")
    assert answer.returncode == 0, answer
    found = json.loads(answer.stdout)
    return [(each["kind"], each["url"]) for each in found["changes"]], found["cursor"], found["more"]


def test_changes_are_read_on_from_a_cursor(site: tuple[str, Path], tmp_path: Path) -> None:
    base, _ = site
    assert changes() == ([], "", False), "nothing is there yet, not even a store"
    pages = [f"{base}/plain/{name}" for name in "abc"]
    write(tmp_path, pages)
    assert shoal("run", "watch.py", "-q", "--run-id", "first").returncode == 0
    new, cursor, more = changes()
    assert (sorted(new), more) == ([("new", page) for page in pages], False)
    assert changes("watch", "--since", cursor) == ([], cursor, False)
    write(tmp_path, [f"{base}/change/b", *pages, f"{base}/etag/d"])
    assert shoal("run", "watch.py", "-q", "--run-id", "second").returncode == 0
    later, end, _ = changes("watch", "--since", cursor)
    assert ("changed", pages[1]) in later or ("new", f"{base}/change/b") in later
    assert len(later) == 3
    assert changes("second") == (later, end, False)
    assert changes("fir")[0] == new
    first, middle, more = changes("--limit", "2")
    rest, last, _ = changes("--since", middle)
    assert (first + rest, last, more) == (new + later, end, True)
    text = shoal("changes", "watch")
    assert text.stdout.splitlines()[0].split() == ["SEEN", "WHAT", "SCRAPER", "URL"]
    assert len(text.stdout.splitlines()) == 1 + len(new + later)
    assert end in text.stderr
    told = Orchestrator("watch.py").changes(since=cursor)
    assert ([(each.kind, each.url) for each in told.changes], told.cursor) == (later, end)
    assert Orchestrator("watch.py").changes(run_id="first", limit=1).more is True


@pytest.mark.parametrize("cursor", ["", "x", "%%%", "eyJhIjotMX0", "bnVsbA", "W10", "é", "a" * 10_000])
def test_what_is_no_cursor_is_refused_with_one_sentence(cursor: str) -> None:
    with pytest.raises(UsageError, match="is no cursor"):
        places_of(cursor)


def test_a_cursor_says_how_far_each_scraper_was_read() -> None:
    places = {"news": 2**62, "a-b_c": 0}
    assert places_of(cursor_of(places)) == places
    assert places_of(None) == {}


def test_unknown_names_get_one_sentence(site: tuple[str, Path], tmp_path: Path) -> None:
    write(tmp_path, [f"{site[0]}/json"])
    assert shoal("run", "watch.py", "-q").returncode == 0
    answer = shoal("changes", "wotch")
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr == "shoal: There is neither a scraper nor a run 'wotch' here. Scrapers: watch.\n"
    assert shoal("changes", "--since", "nonsense").returncode == 2


def test_a_run_that_comes_back_goes_on_until_it_is_stopped(site: tuple[str, Path], tmp_path: Path) -> None:
    base, log = site
    write(tmp_path, [f"{base}/etag/a"], "every='50ms'")
    run = subprocess.Popen([SHOAL, "run", "watch.py", "--workers", "2"], stderr=subprocess.PIPE, text=True)
    wait_for(log, 5)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130, said
    assert "Pages are visited again every 0.05s: this goes on until Ctrl-C (--once: one visit each)." in said
    seen = AccessLog.read(log)
    assert [entry.status for entry in seen][:5] == [200, 304, 304, 304, 304]
    stats = json.loads(shoal("stats", "last", "--json").stdout)
    assert (stats["remaining"], stats["failed"], stats["state"]) == (1, 0, "running")
    assert stats["completed"] >= 5
    assert stats["saved_bytes"] >= 4 * 1_000
    assert "saved" in shoal("stats", "last").stdout
    again = shoal("worker", "watch.py", "--run-id", "last", "--drain", "-q")
    assert again.returncode == 0, "a worker that drains visits what waits, and nothing again"
    assert json.loads(shoal("stats", "last", "--json").stdout)["state"] == "finished"


def test_the_settings_can_ask_for_all_of_it(site: tuple[str, Path], tmp_path: Path) -> None:
    base, log = site
    write(tmp_path, [f"{base}/etag/a"], "attempts=1")
    (tmp_path / "shoal.toml").write_text('[scrapers.watch]\ncache = "10m"\nevery = "1h"\n')
    for _ in range(2):
        assert shoal("run", "watch.py", "--once", "-q").returncode == 0
    assert len(AccessLog.read(log)) == 1
    (tmp_path / "shoal.toml").write_text('cache_max_bytes = 0\n[scrapers.watch]\ncache = "10m"\n')
    write(tmp_path, [f"{base}/etag/b"], "attempts=1")
    for _ in range(2):
        assert shoal("run", "watch.py", "-q").returncode == 0
    assert [entry.status for entry in AccessLog.read(log)] == [200, 200, 200], "nothing was kept"
    assert [kind for kind, _ in changes()[0]] == ["new", "new"], "but what was said is known"


def test_once_is_for_work_that_is_done_here(site: tuple[str, Path], tmp_path: Path) -> None:
    write(tmp_path, [f"{site[0]}/etag/a"], "every='1h'")
    assert shoal("run", "watch.py", "--once", "-q").returncode == 0
    refused = shoal("run", "watch.py", "--once", "--mode", "distributed")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert Orchestrator("watch.py").start(once=True).status == "finished"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cache": "soon"}, "cache must be a number of seconds, or a text such as"),
        ({"every": 0}, "every must be a number of seconds, or a text such as"),
        ({"every": "0s"}, "every must be a number of seconds, or a text such as"),
        ({"every": True}, "every must be a number of seconds, or a text such as"),
        ({"volatile": ["p", "p >>> ["]}, "volatile must be a list of CSS selectors, not 'p >>> ['"),
        ({"volatile": 3}, "volatile must be a list of CSS selectors, not 3"),
        ({"changes": 1}, "changes must be True or False, not 1"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, object], says: str) -> None:
    with pytest.raises(BadScraper) as refused:
        Scraper("watch", **options)  # type: ignore[arg-type]
    assert says in str(refused.value)


@pytest.mark.parametrize("every", ["soon", 0, -1, True, float("inf"), float("nan"), []])
def test_a_request_that_cannot_be_repeated(every: object) -> None:
    from shoal.intake.admission import to_task  # noqa: PLC0415 - brings more than these tests need

    scraper = Scraper("watch")
    scraper.page(lambda page: None)
    with pytest.raises(BadScraper, match="with every="):
        to_task(Request("https://a.example/", every=every), scraper)  # type: ignore[arg-type]


HTML = {"Content-Type": "text/html; charset=utf-8"}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("<p>a  b</p>\n", "<p>a\n\tb</p>", True),
        ("<p>a</p><!-- 1 -->", "<!-- 2 --><p>a</p>", True),
        ("<p>a<script>x=1</script></p>", "<p>a<script>x=2</script></p>", True),
        ("<style>p{}</style><p>a</p>", "<style>b{}</style><p>a</p>", True),
        ("<p>a<i class=ad>1<i class=ad>2</i></i></p>", "<p>a<i class=ad>3</i></p>", True),
        ("<p>a</p>", "<p>b</p>", False),
        ("<a href=/1>x</a>", "<a href=/2>x</a>", False),
        ("<p>é</p>", "<p>e</p>", False),
    ],
)
def test_what_counts_as_a_change(one: str, other: str, same: bool) -> None:
    hashes = {content_hash(page.encode(), HTML, [".ad", "html"]) for page in (one, other)}
    assert (len(hashes) == 1) is same


def test_what_is_not_html_counts_as_it_is() -> None:
    kind = {"Content-Type": "application/json"}
    assert content_hash(b'{"a": 1}', kind) != content_hash(b'{"a":  1}', kind)
    assert content_hash(b"\xff<", HTML) == content_hash(b"\xff<", HTML)
    assert content_hash(b"", {}) == content_hash(b" ", {})


DYING = """
import os, signal
from pathlib import Path
from shoal import Scraper

watch = Scraper("watch", start={start!r}, delay=0, obey_robots=False, cache=60)


@watch.page
def read(page):
    with open("looks", "a") as looks:
        looks.write(f"{{page.unchanged}}\\n")
    if not Path("died").exists():
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {{"unchanged": page.unchanged}}
"""


def test_a_visit_whose_worker_was_killed_has_not_been_seen(site: tuple[str, Path], tmp_path: Path) -> None:
    base, log = site
    (tmp_path / "watch.py").write_text(DYING.format(start=[f"{base}/etag/a"]))
    command = [SHOAL, "run", "watch.py", "-q"]
    assert subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL
    assert changes()[0] == []
    assert subprocess.run([*command, "--resume"], check=False, timeout=60).returncode == 0
    assert changes()[0] == [("new", f"{base}/etag/a")]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
    assert (tmp_path / "looks").read_text().split() == ["False", "False", "True"]
    assert [entry.status for entry in AccessLog.read(log)] == [200, 200], "nothing is kept of what was not settled"
    assert changes()[0] == [("new", f"{base}/etag/a")]

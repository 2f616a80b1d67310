"""The proof of politeness: each rule is seen to be kept, and seen to be broken."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.notes import Note
from shoal.core.task import Policy
from shoal.frontier.contract.frontier import Ask, NewRun, WorkerInfo
from shoal.frontier.open import open_engine
from shoal.insight.audit import RequestRecord, Robots, Rule, audit, read, stream_of, written
from shoal.testing.contract.scene import done, page
from support.command_line import shoal

RECORD = RequestRecord("a.example", "direct", 1000, 0, 50, 200, 1000, 0, 1, Robots.ALLOWED)


def request(at: int, **changes: Any) -> RequestRecord:
    values = {name: getattr(RECORD, name) for name in RECORD.__struct_fields__}
    return RequestRecord(**{**values, "at": at, **changes})


def test_a_polite_run() -> None:
    report = audit([request(3500), request(1000), request(2200), request(2200, exit="p1:80"), request(2201, site="b")])
    assert report.clean
    assert (report.requests, report.slots, report.sites, report.smallest_gap) == (5, 3, 2, 1200)
    assert report.tightest == ("a.example", "direct", 1000)
    assert report.answers == {200: 5}


def test_nothing_at_all() -> None:
    report = audit([])
    assert report.clean
    assert (report.requests, report.smallest_gap) == (0, None)


def test_a_start_too_close() -> None:
    report = audit([request(1000), request(1999)])
    assert not report.clean
    [breach] = report.breaches
    assert (breach.rule, breach.found, breach.allowed, breach.at) == (Rule.DELAY, 999, 1000, 1999)


def test_doubt_counts_against_us() -> None:
    assert audit([request(1000), request(2010, slack=10)]).clean
    assert not audit([request(1000), request(2010, slack=11)]).clean


def test_a_site_over_all_exits() -> None:
    slow = {"site_delay": 500, "delay": 1000}
    assert audit([request(1000, **slow), request(1500, exit="two", **slow)]).clean
    [breach] = audit([request(1000, **slow), request(1400, exit="two", **slow)]).breaches
    assert (breach.rule, breach.exit, breach.found) == (Rule.SITE_DELAY, None, 400)


def test_too_many_at_once() -> None:
    free = {"delay": 0, "concurrency": 2, "took": 100}
    assert audit([request(at, **free) for at in (0, 50, 100, 150)]).clean
    report = audit([request(at, **free) for at in (0, 50, 99)])
    [breach] = report.breaches
    assert (breach.rule, breach.found, breach.allowed, report.most_at_once) == (Rule.CONCURRENCY, 3, 2, 3)


def test_robots_that_were_not_asked_are_counted() -> None:
    assert audit([request(0, robots=Robots.IGNORED), request(5000)]).ignored == 1


def test_a_request_that_robots_txt_disallows() -> None:
    report = audit([request(0), request(5000, robots=Robots.DISALLOWED), request(9000, robots=Robots.FILE)])
    [breach] = report.breaches
    assert (breach.rule, breach.site, breach.at, report.clean) == (Rule.ROBOTS, "a.example", 5000, False)


FORGED: dict[str, tuple[list[RequestRecord], str]] = {
    "delay": (
        [request(0), request(5000), request(5400), request(9000)],
        "BROKEN delay: a.example by direct at ",
    ),
    "site_delay": (
        [request(0, site_delay=500, delay=0), request(300, site_delay=500, delay=0, exit="two")],
        "BROKEN site delay: a.example at ",
    ),
    "concurrency": (
        [request(0, delay=0, took=100), request(50, delay=0, took=100)],
        "BROKEN concurrency: a.example by direct at ",
    ),
    "robots": (
        [request(0), request(5000, robots=Robots.DISALLOWED)],
        "BROKEN robots.txt: a.example by direct at ",
    ),
}


def test_a_forged_log_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every kind, by the command, with exit code 1 and the worst gap; the log without the forgery is clean."""
    monkeypatch.chdir(tmp_path)
    logs = {"clean": [request(0), request(5000, robots=Robots.IGNORED), request(9000)]}
    logs |= {kind: log for kind, (log, _) in FORGED.items()}
    asyncio.run(_write_logs(tmp_path, logs))
    for kind, (_, sentence) in FORGED.items():
        said = shoal("audit", kind)
        assert said.returncode == 1, said
        assert sentence in said.stdout
        assert "1 breach in all." in said.stdout
    assert (
        "Smallest gap: 400 ms at a.example by direct, where 1000 ms were asked for." in shoal("audit", "delay").stdout
    )
    told = json.loads(shoal("audit", "robots", "--json").stdout)
    assert (told["clean"], told["broken"], told["breaches"][0]["rule"]) == (False, 1, "robots.txt")
    clean = shoal("audit", "clean")
    assert (clean.returncode, "No rule was broken." in clean.stdout) == (0, True)
    assert "1 request made without asking robots.txt (obey_robots=False)." in clean.stdout


def test_requests_without_a_log_prove_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asyncio.run(_write_logs(tmp_path, {"idle": [], "silent": []}))
    asyncio.run(_fetch_one(tmp_path, "silent"))
    said = shoal("audit", "silent")
    assert (said.returncode, said.stdout) == (1, "")
    assert "Nothing is proven: the run silent has made 1 request, and none is in its log." in said.stderr
    assert json.loads(shoal("audit", "silent", "--json").stdout)["clean"] is False
    said = shoal("audit", "idle")
    assert (said.returncode, said.stderr) == (0, "The run idle has made no requests.\n")


async def _fetch_one(folder: Path, run_id: str) -> None:
    engine = await open_engine(f"sqlite:///{folder}/shoal.db")
    me = WorkerInfo("w", "elsewhere", 1, 1)
    asking = Ask(me, ["shop"], ["bulk"], {"default": ["direct"]}, 1)
    try:
        await engine.frontier.enqueue(run_id, [page("a.example/1")])
        [lease] = (await engine.frontier.exchange(asking)).leases
        await engine.frontier.exchange(msgspec.structs.replace(asking, want=0, settlements=[done(lease)]))
    finally:
        await engine.close()


async def _write_logs(folder: Path, logs: dict[str, list[RequestRecord]]) -> None:
    engine = await open_engine(f"sqlite:///{folder}/shoal.db")
    try:
        for run_id, records in logs.items():
            await engine.frontier.create_run(NewRun(run_id, "shop", Policy()))
            notes = [Note(stream_of(run_id), written([record])) for record in reversed(records)]
            me = WorkerInfo("w", "elsewhere", 1, 1)
            await engine.frontier.exchange(Ask(me, ["shop"], ["bulk"], {"default": ["direct"]}, 0, notes=notes))
    finally:
        await engine.close()


@given(st.lists(st.integers(0, 100_000), max_size=40), st.integers(1, 3000))
def test_exactly_what_is_too_close_is_found(starts: list[int], delay: int) -> None:
    order = sorted(starts)
    truth = sum(later - earlier < delay for earlier, later in itertools.pairwise(order))
    assert audit(request(at, delay=delay, took=0, concurrency=99) for at in starts).broken == truth


def test_the_log_is_compact_and_comes_back() -> None:
    records = [request(1_790_000_000_000 + at) for at in range(100)]
    body = written(records)
    assert read(body) == records
    assert len(body) / len(records) < 80

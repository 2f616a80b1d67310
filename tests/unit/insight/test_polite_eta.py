"""How long a run takes at least if it stays polite, and because of which site."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cli.output.progress import progress_line
from shoal.cli.output.rate import Pace
from shoal.core.task import Policy, RunState
from shoal.frontier.contract.frontier import Counters, Run
from shoal.frontier.contract.reader import SiteRecord
from shoal.insight.polite_eta import PoliteETA, polite_eta
from support.command_line import shoal
from support.engine_urls import ENGINES, empty_store

NOW = 1_000_000


def site(name: str, waiting: int, delay: int, *, next_at: int = 0, site_delay: int = 0) -> SiteRecord:
    return SiteRecord(name, delay, waiting, 0, next_at, 0, site_delay)


def test_the_site_that_takes_longest_binds() -> None:
    sites = [site("many", 100, 1_000), site("slow", 11, 30_000), site("fast", 10_000, 0)]
    assert polite_eta(sites, 1, NOW) == PoliteETA("slow", 11, 300_000, 30_000, 1)
    assert polite_eta(sites[:1], 1, NOW) == PoliteETA("many", 100, 99_000, 1_000, 1)


def test_exits_share_the_work_of_a_site_but_not_the_delay_of_the_whole_site() -> None:
    assert polite_eta([site("a", 100, 1_000)], 20, NOW) == PoliteETA("a", 100, 4_000, 1_000, 20)
    assert polite_eta([site("a", 101, 1_000)], 20, NOW) == PoliteETA("a", 101, 5_000, 1_000, 20)
    assert polite_eta([site("a", 100, 1_000, site_delay=500)], 20, NOW) == PoliteETA("a", 100, 49_500, 10_000, 20)


def test_a_site_that_rests_takes_that_much_longer() -> None:
    found = polite_eta([site("a", 3, 1_000, next_at=NOW + 60_000), site("b", 9, 1_000)], 1, NOW)
    assert found == PoliteETA("a", 3, 62_000, 1_000, 1, 60_000)


@pytest.mark.parametrize(
    "sites",
    [[], [site("a", 0, 9_000)], [site("a", 9_000, 0)], [site("a", 1, 1_000, next_at=NOW - 1)]],
)
def test_nothing_binds(sites: list[SiteRecord]) -> None:
    assert polite_eta(sites, 1, NOW) is None


@given(st.integers(1, 500), st.integers(1, 5_000), st.integers(0, 3_000), st.integers(1, 30))
def test_no_polite_schedule_is_shorter(waiting: int, delay: int, site_delay: int, exits: int) -> None:
    """The earliest starts that both rules allow, one by one."""
    free = [0] * exits
    last = -site_delay
    for _ in range(waiting):
        way = min(range(exits), key=free.__getitem__)
        last = max(free[way], last + site_delay)
        free[way] = last + delay
    found = polite_eta([site("a", waiting, delay, site_delay=site_delay)], exits, NOW)
    assert (0 if found is None else found.left) <= last
    if not site_delay:
        assert (0 if found is None else found.left) == last


def test_the_progress_line_names_it() -> None:
    run = Run("r", "books", "single", RunState.RUNNING, "q", Policy(), None, 0, None, Counters(done=1, waiting=9), {})
    line = progress_line(run, Pace(), 5.0, PoliteETA("slow.example", 9, 300_000, 30_000, 1))
    assert line.endswith("at least 5m 00s for slow.example"), line
    assert "least" not in progress_line(run, Pace(), 5.0, PoliteETA("slow.example", 9, 300, 30, 1))


@pytest.mark.parametrize("kind", ENGINES)
def test_stats_say_how_long_it_takes(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    urls = [f"http://{host}.example/{number}" for host, many in (("a", 3), ("b", 31)) for number in range(many)]
    (tmp_path / "x.py").write_text(
        f"from shoal import Scraper\nx = Scraper('x', start={urls!r}, delay=10, mode='distributed')\n"
        "x.page(lambda page: None)\n"
    )
    with empty_store(kind, tmp_path) as store:
        monkeypatch.setenv("SHOAL_ENGINE", store)
        (tmp_path / "shoal.toml").write_text('[exits.default]\nways = ["source://127.0.0.2", "source://127.0.0.3"]\n')
        assert shoal("run", "x.py").returncode == 0
        told = json.loads(shoal("stats", "last", "--json").stdout)
        assert told["eta"] == {
            "seconds": 150.0, "site": "b.example", "waiting": 31, "delay": 10.0, "exits": 2, "resting": 0.0,
            "cause": None,
        }  # fmt: skip
        said = shoal("stats", "last").stdout
        assert "At least 2m 30s more: b.example has 31 waiting, one request each 10s by 2 exits." in said
        shoal("cancel", "last")
        assert json.loads(shoal("stats", "last", "--json").stdout)["eta"] is None

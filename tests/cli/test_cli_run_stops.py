"""Runs that are interrupted, killed, resumed or spread over processes, as real processes with real signals."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.command_line import SHOAL, script, shoal
from support.counting_site import PAGES, Site
from support.shop_file import ALL, SCRAPERS, begin, children_of, end, lives, numbers
from support.waiting import wait_until


@pytest.fixture(autouse=True)
def site(counting_site: Site, own_folder: Path) -> Site:
    """The site of the scrapers in `shop.py`, which is in the folder of the test."""
    (own_folder / "shop.py").write_text(SCRAPERS.format(url=counting_site.url, delay=0.02))
    return counting_site


def test_an_interrupted_run_says_how_to_go_on_and_goes_on(site: Site) -> None:
    process = begin("run", "shop.py:books", "-o", "out.jsonl")
    site.wait_for(10)
    process.send_signal(signal.SIGINT)
    code, _, said = end(process)
    assert code == 130
    told = re.search(r"Wrote the (\d+) items so far to out.jsonl.* Go on with: (shoal run .*)\n", said)
    assert told is not None
    assert len(numbers()) == int(told[1]) < PAGES
    run = json.loads(shoal("runs", "--json").stdout)[0]
    assert (run["state"], run["standing"]) == ("running", "interrupted")
    assert told[2] == f"shoal run shop.py:books --resume --run-id {run['run_id']} -o out.jsonl --replace"
    Path("shoal.toml").write_text("[scrapers.books]\ndelay = 0\n")
    answer = script(*shlex.split(told[2])[1:])
    assert answer.returncode == 0
    assert "this run keeps those it was started with" in answer.stderr
    assert numbers() == ALL
    assert len([path for path in site.seen if path != "/robots.txt"]) == PAGES + 1, "nothing was fetched twice"
    nothing = script("run", "shop.py:books", "--resume")
    assert (nothing.returncode, "no unfinished run of 'books'" in nothing.stderr) == (2, True)


def test_a_killed_run_goes_on_at_once(site: Site) -> None:
    for _ in range(2):
        process = begin("run", "shop.py:books", *(["--resume"] if site.seen else []))
        site.forget()
        site.wait_for(10)
        process.kill()
        end(process)
    began = time.monotonic()
    assert script("run", "shop.py:books", "--resume", "-o", "out.jsonl").returncode == 0
    assert numbers() == ALL
    assert time.monotonic() - began < 60, "leases of a dead process need not run out"


def test_a_handler_that_never_returns_can_be_interrupted(site: Site) -> None:
    process = begin("run", "shop.py:stuck")
    site.wait_for(2)

    def ended() -> bool:
        process.send_signal(signal.SIGINT)
        return process.poll() is not None

    wait_until(ended, "it gives in", again=0.3)
    assert end(process)[0] == 130


def test_several_processes_share_the_work_and_one_that_dies_is_replaced(site: Site) -> None:
    Path("shoal.toml").write_text("[scrapers.books]\ndelay = 0.2\n")
    process = begin("run", "shop.py:books", "--workers", "3", "-o", "out.jsonl")
    site.wait_for(5)
    children = children_of(process)
    assert len(children) == 2
    os.kill(children[0], signal.SIGKILL)
    code, _, said = end(process)
    assert "A worker process died (signal SIGKILL); starting another." in said
    assert code == 0
    assert numbers() == ALL
    assert not any(map(lives, children))


def test_processes_do_not_outlive_the_one_that_started_them(site: Site) -> None:
    Path("shoal.toml").write_text("[scrapers.books]\ndelay = 2\n")
    process = begin("run", "shop.py:books", "--workers", "2")
    site.wait_for(2)
    children = children_of(process)
    assert len(children) == 1
    process.kill()
    try:
        wait_until(lambda: not any(map(lives, children)), "they end; the work would take them 80 seconds", within=60)
    finally:
        for child in filter(lives, children):
            os.kill(child, signal.SIGKILL)
        end(process)


def test_ctrl_c_while_urls_are_still_awaited(site: Site) -> None:
    process = subprocess.Popen(
        [SHOAL, "run", "shop.py:empty", "--urls-file", "-", "--run-id", "mine"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(f"{site.url}/5\n")
    process.stdin.flush()
    while "mine" not in shoal("runs").stdout:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.endswith("Go on with: shoal run shop.py:empty --resume --run-id mine --urls-file -\n")


def test_a_run_that_was_killed_before_its_export_can_be_resumed_for_it(site: Site) -> None:
    assert script("run", "shop.py:books").returncode == 0
    site.forget()
    answer = script("run", "shop.py:books", "--resume", "-o", "out.jsonl")
    assert (answer.returncode, site.seen) == (0, [])
    assert "is finished: 41 pages done, and nothing is left to do." in answer.stderr
    assert numbers() == ALL


def test_the_hint_to_resume_has_all_that_is_needed(site: Site, tmp_path: Path) -> None:
    Path("other.toml").write_text("[scrapers.books]\ndelay = 0.2\n")
    options = ["-o", "out.jsonl", "-o", "a b.csv", "--workers", "2", "--concurrency", "3", "--once"]
    process = begin("run", "shop.py:books", *options, "--engine", "sqlite:///x.db", "--config", "other.toml")
    site.wait_for(4)
    process.send_signal(signal.SIGINT)
    said = end(process)[2]
    command = shlex.split(said.rpartition("Go on with: ")[2])
    (run,) = json.loads(shoal("runs", "--json", "--engine", "sqlite:///x.db").stdout)
    assert command[:6] == ["shoal", "run", "shop.py:books", "--resume", "--run-id", run["run_id"]]
    settings = ["--config", "other.toml", "--engine", "sqlite:///x.db"]
    assert command[6:] == [*options[:4], "--replace", *options[4:], *settings]
    stats = shoal("stats", "last", "--engine", "sqlite:///x.db")
    assert "  interrupted\n" in stats.stdout
    assert stats.stderr.endswith(f"shoal run TARGET --resume --run-id {run['run_id']} --engine sqlite:///x.db\n")


def test_no_longer_following_a_run_says_how_to_come_back() -> None:
    process = begin("run", "shop.py:books", "--mode", "distributed", "--run-id", "mine", "--wait", "-o", "out.jsonl")
    wait_until(lambda: "mine" in shoal("runs").stdout, "it is filled")
    wait_until(lambda: "waiting for workers" in shoal("runs").stdout, "it is handed over")
    process.send_signal(signal.SIGINT)
    code, _, said = end(process)
    assert code == 130
    how = "shoal run shop.py:books --resume --run-id mine -o out.jsonl --mode distributed --wait"
    assert said.endswith(f"which its workers go on with. Follow it with: {how}\n")

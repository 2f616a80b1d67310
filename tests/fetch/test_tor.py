"""Leaving by Tor: real daemons, first with nobody to talk to, then in a network of their own on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from servers.proxies import need
from servers.tor_daemons import daemons_in, daemons_of, listening, nobody, speaks_socks
from servers.tor_network import TorNetwork, has_connection, tor_network
from shoal.core import log_events
from shoal.core.exit_address import ExitAddress, TorOptions
from shoal.core.outcome import Blame
from shoal.errors import TorFailed
from shoal.fetch.exit_connections import ExitConnections, open_exit
from shoal.fetch.http import HttpFetcher
from shoal.fetch.protocol import Fetch, FetchError
from shoal.fetch.tor.control_port import ControlError, ControlPort
from shoal.fetch.tor.daemon import TorDaemon
from shoal.fetch.tor.data_folder import take_folder
from shoal.frontier.contract.exits import NewExit
from shoal.testing.access_log import AccessLog
from shoal.testing.hostile_site import HostileSite
from shoal.testing.jump_clock import JumpClock
from shoal.work.exits.tor_exit import MOST_LIFTED
from support.crawling import kill_all, said, shoal, site_process, start, wait_for, write_scraper
from support.serving import server
from support.waiting import until, wait_until
from support.working import Crawled, crawl, opened, reader, result_of, start_run, worker_for

DELAY = 0.3
PAGES = 12


@pytest.fixture(scope="module", autouse=True)
def network() -> Iterator[TorNetwork]:
    """Started with the first test of this file: it comes up while those run that do not need it."""
    need("tor", "tor")
    with tor_network() as network:
        yield network


def lonely(folder: Path, **options: Any) -> TorDaemon:
    folder.mkdir(exist_ok=True)
    return TorDaemon(TorOptions(**{"torrc": nobody(), "bootstrap_timeout": 30.0, **options}), folder)


async def test_each_daemon_has_ports_of_its_own_and_ends_when_told(tmp_path: Path) -> None:
    one, two = lonely(tmp_path / "one"), lonely(tmp_path / "two")
    try:
        await one.launch()
        await two.launch()
        assert one.port != two.port
        for daemon in (one, two):
            assert speaks_socks(daemon.port)
            assert not await daemon.works(), "it has no circuit, and says so"
    finally:
        await one.stop()
        await two.stop()
    assert daemons_in(tmp_path) == []
    assert not speaks_socks(one.port)


async def test_a_new_identity_is_asked_for_no_more_often_than_tor_allows(tmp_path: Path) -> None:
    clock = JumpClock()
    daemon = lonely(tmp_path / "one")
    try:
        await daemon.launch()
        daemon._clock = clock
        with listening(tmp_path / "one") as signals:
            await daemon.new_identity()
            second = asyncio.ensure_future(daemon.new_identity())
            await until(lambda: clock.sleeping, "the second one waits")
            assert clock.sleeping == (10_000,)
            clock.advance(9_999)
            assert len(clock.sleeping) == 1
            second.cancel()
            await daemon.stop()
        assert signals() == ["NEWNYM"]
        with pytest.raises(TorFailed, match="not running"):
            await lonely(tmp_path / "two").new_identity()
    finally:
        await daemon.stop()


async def test_a_daemon_that_does_not_answer_is_ended(tmp_path: Path) -> None:
    daemon = lonely(tmp_path / "one", answer_within=2.0)
    try:
        await daemon.launch()
        [stopped] = daemons_in(tmp_path)
        os.kill(stopped, signal.SIGSTOP)
        assert not await daemon.works()
        await daemon.ended()
        assert daemons_in(tmp_path) == []
    finally:
        await daemon.stop()


async def test_who_stops_asking_does_not_leave_the_answer_to_the_next(tmp_path: Path) -> None:
    daemon = lonely(tmp_path / "one")
    try:
        await daemon.launch()
        port = int((tmp_path / "one" / "control-port").read_text().rpartition(":")[2])
        control = await ControlPort.open(port, (tmp_path / "one" / "control-cookie").read_bytes())
        for _ in range(5):
            asking = asyncio.ensure_future(control.get("version"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            asking.cancel()
        assert (await control.get("process/pid")).isdigit()
        with pytest.raises(ControlError, match="refuses"):
            await control.ask("NONSENSE")
        await daemon.stop()
        with pytest.raises(ControlError, match="does not answer"):
            await control.get("version")
    finally:
        await daemon.stop()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"bootstrap_timeout": 1.5},
            r"no way into its network within 1.5 s; it is at \d+ % \(.+\)\. Its last ",
        ),
        ({"torrc": "Nonsense 1"}, r"ended by itself \(exit code 1\)\. Its last message: .*Unknown option 'Nonsense'"),
        ({"torrc": "DisableNetwork 1"}, "opens no SOCKS port. Look for `DisableNetwork`"),
        ({"path": "tohr"}, "there is no 'tohr' here. Install it"),
    ],
)
async def test_a_daemon_that_cannot_be_had_says_why_in_a_sentence(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(TorFailed, match=says):
        await lonely(tmp_path / "one", **options).start()
    assert daemons_in(tmp_path) == []


def test_a_folder_has_one_user_at_a_time_and_keeps_its_name(tmp_path: Path) -> None:
    first, second = take_folder(str(tmp_path)), take_folder(str(tmp_path))
    assert first.path != second.path
    assert first.name != second.name
    name = first.name
    first.close()
    third = take_folder(str(tmp_path))
    assert third.name == name, "who comes next goes on with the same clocks"
    second.close()
    third.close()
    third.close()
    (tmp_path / "file").write_text("")
    with pytest.raises(TorFailed, match=r"cannot be used .*folder"):
        take_folder(str(tmp_path / "file"))


async def test_what_fails_through_a_daemon_without_circuits_is_the_daemons_failure(tmp_path: Path) -> None:
    daemon = lonely(tmp_path / "one")
    seen: list[FetchError] = []

    def way(name: str, _guarded: bool) -> ExitConnections:
        way = open_exit(ExitAddress("socks5", "127.0.0.1", daemon.port))
        way.works = daemon.works if name == "asked" else None
        return way

    fetcher = HttpFetcher("ShoalTest/1.0", exits=way)
    try:
        await daemon.launch()
        for name in ("asked", "not asked"):
            with pytest.raises(FetchError) as error:
                await fetcher.fetch(Fetch("http://127.0.0.1:9/", timeout=0.5, exit=name), lambda: None)
            seen.append(error.value)
    finally:
        await fetcher.close()
        await daemon.stop()
    assert [(error.blame, error.doubtful) for error in seen] == [(Blame.EXIT, False), (Blame.EXIT, True)]


OWNER = """
import asyncio, sys
from pathlib import Path
from shoal.core.exit_address import TorOptions
from shoal.fetch.tor.daemon import TorDaemon

async def main():
    await TorDaemon(TorOptions(torrc=sys.argv[2]), Path(sys.argv[1])).launch()
    print("ready", flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_a_daemon_does_not_outlive_its_owner(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, tmp_path, nobody()], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    with owner.stdout:
        assert owner.stdout.readline() == b"ready\n"
        assert len(daemons_in(tmp_path)) == 1
        owner.kill()
        owner.wait()
    wait_until(lambda: daemons_in(tmp_path) == [], "the daemon has ended with its owner")


def test_the_command_line_ends_with_one_sentence_where_tor_cannot_be_had(tmp_path: Path) -> None:
    scraper = _project(tmp_path, "http://127.0.0.1:9/", nobody(), "bootstrap_timeout = 1")
    ended = subprocess.run(shoal("run", scraper, "--quiet"), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "no way into its network within 1 s" in ended.stderr
    assert ended.stderr.strip().splitlines()[-1].startswith("shoal: ")
    assert "Traceback" not in ended.stderr
    assert daemons_in(tmp_path) == []


def test_a_worker_that_still_waits_for_tor_can_be_stopped(tmp_path: Path) -> None:
    scraper = _project(tmp_path, "http://127.0.0.1:9/", nobody(), "bootstrap_timeout = 600")
    worker = start(tmp_path, "worker", scraper, "--quiet")
    wait_until(lambda: len(daemons_in(tmp_path)) == 1, "a daemon is started")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(120) == 0, (tmp_path / "command.log").read_text()
    assert daemons_in(tmp_path) == []


def _two_tor_exits(folder: Path) -> list[str]:
    """The names of all exits, once two of them are Tor daemons; nothing before that, nor before there is a store."""
    listed = subprocess.run(shoal("exits", "list", "--json"), cwd=folder, check=False, capture_output=True, text=True)
    names = [exit_["name"] for exit_ in json.loads(listed.stdout)] if listed.returncode == 0 else []
    return names if len([name for name in names if name.startswith("tor-")]) == 2 else []


def test_two_workers_have_two_daemons_and_neither_leaves_one_behind(tmp_path: Path, network: TorNetwork) -> None:
    network.wait()
    with site_process(tmp_path) as (port, log):
        scraper = _project(tmp_path, f"http://127.0.0.1:{port}/site/{PAGES}/", network.lines)
        one, two = (start(tmp_path, "worker", scraper, "--quiet") for _ in range(2))
        known = wait_until(lambda: _two_tor_exits(tmp_path), "both workers have come into the network")
        [of_one], [of_two] = daemons_of(one), daemons_of(two)
        subprocess.run(shoal("run", scraper, "--mode", "distributed", "--quiet"), cwd=tmp_path, check=True)
        wait_for(log, 6)
        wait_until(lambda: network.leaves_to(port), "a relay has a connection to the site")
        assert not any(has_connection(worker.pid, port) for worker in (one, two))
        kill_all(one)
        wait_until(lambda: not of_one.is_running(), "the daemon has ended with the worker that was killed")
        wait_for(log, PAGES + 1)
        wait_until(lambda: _crawled(tmp_path).counters.remaining == 0, "the other worker has ended the crawl")
        two.send_signal(signal.SIGTERM)
        assert two.wait(120) == 0, (tmp_path / "command.log").read_text()
        assert not of_two.is_running()
        seen = AccessLog.read(log)
    proof = said(tmp_path, "audit", "last", "--json")
    print(f"{len(seen)} requests by {sorted(known)}, smallest gap by exit {proof['smallest_gap_ms']} ms")
    assert len(_crawled(tmp_path).stored) == PAGES
    assert proof["clean"], proof
    assert daemons_in(tmp_path) == []


def test_a_ban_ends_with_the_identity_and_a_daemon_that_dies_costs_no_page(tmp_path: Path, network: TorNetwork) -> None:
    network.wait()
    with site_process(tmp_path) as (port, log):
        site = f"http://127.0.0.1:{port}"
        scraper = _project(tmp_path, f"{site}/429/first/1/3600/once", network.lines)
        scraper.write_text(scraper.read_text().replace("/once'", f"/once', '{site}/site/{PAGES}/'"))
        crawl = start(tmp_path, "run", scraper, "--quiet")
        with listening(tmp_path / "tor" / "0") as signals:
            wait_for(log, 6)
        for daemon in daemons_of(crawl):
            daemon.kill()
        assert crawl.wait(90) == 0, (tmp_path / "command.log").read_text()
        seen = AccessLog.read(log)
        [tried] = said(tmp_path, "exits", "check", "tor", "--url", f"{site}/site/1/", "--json")
    gap = seen.smallest_gap(lambda entry: entry.host)
    print(f"{len(seen)} requests by one exit, smallest gap of all {gap:.3f} s")
    assert signals() == ["NEWNYM"]
    assert gap >= DELAY, "the clock of the exit goes on, whatever its identity"
    crawled = _crawled(tmp_path)
    assert sorted(Counter(item.url for item in crawled.stored).values()) == [1] * (PAGES + 1)
    assert (crawled.counters.dead, crawled.counters.retries) == (0, 0)
    assert "tor has ended and is started again" in (tmp_path / "command.log").read_text()
    assert tried == {"name": "tor", "ok": True, "said": "HTTP 200"}
    assert daemons_in(tmp_path) == []


async def test_a_site_that_turns_away_one_identity_after_the_other_is_left_alone(
    tmp_path: Path, network: TorNetwork
) -> None:
    await asyncio.to_thread(network.wait)
    # Without a pause: tor keeps them waiting, and says yes at once.
    tor = TorOptions(folder=str(tmp_path / "tor"), torrc=network.lines, identity_pause=0)
    connections: list[str] = []

    async def turn_away(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readuntil(b"\r\n\r\n"):
            connections.append(str(writer.get_extra_info("peername")))
            writer.write(b"HTTP/1.1 429 Too Many\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n")

    async with server(turn_away) as port, opened(tmp_path) as engine:
        site = f"127.0.0.1:{port}"
        scraper = reader(start=[f"http://{site}/"], exits="tor")
        await start_run(engine, scraper)
        worker = worker_for(engine, scraper, exits={"tor": NewExit("tor", "tor", ("tor",))}, tor=tor)
        with capture_logs() as logs:
            working = asyncio.ensure_future(worker.run())

            def enough() -> list[list[str]] | None:
                assert not working.done()
                found = [log["lifts"] for log in logs if log["event"] == log_events.TOR_CHANGED_IDENTITY]
                return found if len(found) > MOST_LIFTED else None

            changes = await until(enough, "the site has had enough of all identities")
            [exit_] = await engine.exits.all()
            worker.stop()
            await working
        [slot] = await engine.reader.slots(site)
        assert slot.blocked_until > await engine.reader.now() + 3_000_000
        assert (exit_.name, exit_.address, exit_.pools) == (slot.exit, "tor", ("tor",))
        assert await engine.exits.all() == [], "it ends with its worker"
    assert changes == [[site]] * MOST_LIFTED + [[]]
    assert len({*connections}) == len(connections) == MOST_LIFTED + 1, "an identity has its own connections"
    assert daemons_in(tmp_path) == []


async def test_a_new_identity_after_so_many_requests(tmp_path: Path, network: TorNetwork) -> None:
    await asyncio.to_thread(network.wait)
    tor = TorOptions(folder=str(tmp_path / "tor"), torrc=network.lines, new_identity_every=4, identity_pause=0)
    async with HostileSite() as site, opened(tmp_path) as engine:
        pages = [site.url(f"/site/12/p/{number}") for number in range(10)]
        with capture_logs() as logs:
            crawled = await crawl(
                engine, reader(exits="tor"), urls=pages, exits={"tor": NewExit("tor", "tor", ("tor",))}, tor=tor
            )
    assert crawled.counters.done == len(pages)
    lifts = [log["lifts"] for log in logs if log["event"] == log_events.TOR_CHANGED_IDENTITY]
    assert lifts
    assert not any(lifts)


def _project(folder: Path, url: str, torrc: str, more: str = "") -> Path:
    lines = f'[tor]\nfolder = "{folder}/tor"\ntorrc = """{torrc}"""\n{more}\n'
    (folder / "shoal.toml").write_text(f'{lines}[scrapers.proof]\nexits = "tor"\n')
    return write_scraper(folder, [url], delay=DELAY)


def _crawled(folder: Path) -> Crawled:
    """What the only run of this folder has come to so far."""

    async def look() -> Crawled:
        async with opened(folder) as engine:
            [run] = await engine.reader.runs()
            return await result_of(engine, run.run_id)

    return asyncio.run(look())

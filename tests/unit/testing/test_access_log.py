"""The access log of a target tells the truth, also of one that was killed."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from typing import TYPE_CHECKING

import aiohttp

from shoal.testing.access_log import AccessEntry, AccessLog
from shoal.testing.hostile_site import (
    HostileSite,
)

if TYPE_CHECKING:
    from pathlib import Path


async def test_the_log_knows_who_asked_what_and_when() -> None:
    async with HostileSite(host="0.0.0.0") as site:  # noqa: S104  a test of loopback addresses
        connector = aiohttp.TCPConnector(local_addr=("127.0.0.7", 0))
        async with aiohttp.ClientSession(connector=connector, headers={"User-Agent": "shoal-test"}) as client:
            before = time.time()
            await client.get(site.url("/json?q=1", host="127.0.0.9"), headers={"Host": "Shop.test:99"})
            await asyncio.gather(*(client.get(site.url("/delay/30", host="127.0.0.9")) for _ in range(3)))
    first, *others = site.log
    assert (first.peer, first.local, first.host, first.path) == ("127.0.0.7", "127.0.0.9", "shop.test", "/json?q=1")
    assert (first.method, first.status, first.agent, first.overlapped) == ("GET", 200, "shoal-test", False)
    assert first.finished is not None
    assert before <= first.started <= first.finished <= time.time()
    assert all(entry.overlapped for entry in others)
    assert site.log.most_at_once() == 3
    assert site.log.counts() == {"/json?q=1": 1, "/delay/30": 3}
    assert len(site.log.filter("/delay", host="127.0.0.9", peer="127.0.0.7")) == 3
    assert not len(site.log.filter(peer="127.0.0.1"))


def entry(number: int, started: float, finished: float | None, host: str = "a", peer: str = "p") -> AccessEntry:
    return AccessEntry(number, started, peer, "l", "GET", host, "/", "", finished=finished)


def test_gaps_are_per_slot_and_sorted() -> None:
    log = AccessLog(
        [
            entry(0, 10.0, 10.5),
            entry(1, 12.0, 12.5),
            entry(2, 10.1, 12.0, host="b"),
            entry(3, 13.0, None),
            entry(4, 13.0, 13.0, peer="q"),
        ]
    )
    assert log.gaps() == {("a", "p"): [1.0, 2.0], ("b", "p"): [], ("a", "q"): []}
    assert log.smallest_gap() == 1.0
    assert log.smallest_gap(key=lambda entry: entry.host) == 0.0
    assert (log.most_at_once(), log.most_at_once(key=lambda entry: 0)) == (1, 2)
    one_after_the_other = AccessLog([entry(0, 10.0, 11.05), entry(1, 11.0, 12.0)])
    assert [one_after_the_other.most_at_once(blur=blur) for blur in (0.0, 0.04, 0.06)] == [2, 2, 1]
    assert AccessLog().smallest_gap() == float("inf")


async def test_a_killed_site_loses_nothing_that_it_saw(tmp_path: Path, client: aiohttp.ClientSession) -> None:
    file = tmp_path / "access.jsonl"
    for life in (1, 2):
        command = [sys.executable, "-m", "shoal.testing.hostile_site", "--log", str(file), "--robots", "allow"]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        ready, url = (await process.stdout.readline()).decode().split()
        assert ready == "ready"
        async with client.get(f"{url}/robots.txt") as response:
            assert response.status == 200
        async with client.get(f"{url}/drip/1000/1000"):  # its head has come: it is being answered
            process.send_signal(signal.SIGKILL)
            await process.wait()
        log = AccessLog.read(file)
        assert [(seen.path, seen.status) for seen in log] == [("/robots.txt", 200), ("/drip/1000/1000", 0)] * life
        assert log.entries[-1].finished is None
        assert log.torn == life - 1
        with file.open("ab") as torn:
            torn.write(b'{"event":"began","num')
    assert AccessLog.read(file).torn == 2


async def test_the_process_stops_when_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shoal.testing.hostile_site", "--log", str(tmp_path / "log")]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    process.terminate()
    assert await process.wait() == 0
    assert await process.stdout.read() == b""

"""Several processes on one file, and what is left when one of them is killed. Real processes, real kills."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shoal.core.clock import SystemClock
from shoal.core.outcome import Done, Settlement
from shoal.core.politeness import transit_allowance
from shoal.core.task import Policy
from shoal.frontier.contract.frontier import Ask, NewRun
from shoal.frontier.shared import liveness
from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.testing.contract.scene import page, pages
from shoal.testing.jump_clock import JumpClock

HEAD = """
import asyncio, json, sys
from pathlib import Path
from shoal.frontier.contract.frontier import Ask, NewRun
from shoal.frontier.sqlite.engine import open_sqlite
from shoal.core.outcome import Done, Settlement
from shoal.frontier.shared.liveness import introduce
from shoal.core.task import Policy
from shoal.testing.contract.scene import page

def say(what):
    print(json.dumps(what), flush=True)

def ask(me, want, *settlements):
    return Ask(me, ("shop",), ("bulk",), {"default": ("direct",)}, want, None, settlements)
"""

WORK = """
async def main(path):
    me, notebook = introduce()
    engine = await open_sqlite(path)
    leases, claimed = [], []
    while True:
        ended = [
            Settlement(lease.task.run_id, lease.task.id, lease.token, Done((b"{}",)), lease.claimed_at)
            for lease in leases
        ]
        granted = await engine.frontier.exchange(ask(me, 5, *ended))
        leases = granted.leases
        claimed += [lease.task.id for lease in leases]
        if granted.left == 0:
            break
    await engine.close()
    notebook.close()
    say(claimed)
asyncio.run(main(Path(sys.argv[1])))
"""

ENQUEUE = """
async def main(path, start):
    engine = await open_sqlite(path)
    await engine.frontier.create_run(NewRun("run", "shop", Policy()))
    number = start
    while True:
        batch = [page(f"{n % 7}.example/{n}") for n in range(number, number + 20)]
        await asyncio.gather(*(engine.frontier.enqueue("run", batch[i : i + 5]) for i in range(0, 20, 5)))
        number += 20
        say(number)
asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""

HOLD = """
async def main(path, noted):
    me, notebook = introduce()
    engine = await open_sqlite(path)
    granted = await engine.frontier.exchange(ask(me, 3))
    by_site = {lease.task.site: lease.task.id for lease in granted.leases}
    with notebook.holding(by_site[noted]):
        say({"tasks": by_site, "notebook": me.notebook})
        sys.stdin.read()
asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@contextlib.contextmanager
def process(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HEAD + textwrap.dedent(code), *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


def hear(started: subprocess.Popen[str]) -> Any:
    assert started.stdout is not None
    line = started.stdout.readline()
    assert line, "the process ended without a word"
    return json.loads(line)


def kill(started: subprocess.Popen[str]) -> list[str]:
    """`kill -9`, and what it had said until then."""
    os.kill(started.pid, signal.SIGKILL)
    assert started.stdout is not None
    said = started.stdout.read().splitlines()
    started.wait()
    return said


async def test_several_processes_share_the_work(path: Path) -> None:
    engine = await open_sqlite(path)
    await engine.frontier.create_run(NewRun("run", "shop", Policy(delay=0, concurrency=2)))
    tasks = [task for n in range(20) for task in pages(f"{n}.example", 20)]
    await engine.frontier.enqueue("run", tasks)
    with contextlib.ExitStack() as stack:
        crew = [stack.enter_context(process(WORK, path)) for _ in range(3)]
        claimed = [hear(each) for each in crew]
    every = [task for each in claimed for task in each]
    assert len(every) == len(set(every)) == 400
    counts = (await engine.reader.run("run")).counters
    assert (counts.done, counts.items, counts.late, counts.remaining) == (400, 400, 0, 0)
    await engine.close()
    print("tasks per process:", [len(each) for each in claimed])


def test_killed_in_the_middle_of_writing(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was acknowledged is there, nothing is half there, and the file is whole, kill after kill."""
    acknowledged = 0
    for round_number in range(6):
        with process(ENQUEUE, path, acknowledged) as started:
            for _ in range(1 + round_number * 3):
                acknowledged = hear(started)
            said = kill(started)
            whole = [line for line in said if line.isdigit()]
            acknowledged = max([acknowledged, *map(int, whole)])
        with contextlib.closing(sqlite3.connect(path)) as plain:
            assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            numbers = {int(url.rpartition("/")[2]) for (url,) in plain.execute("SELECT url FROM task")}
            [(waiting, ready, seen)] = plain.execute(
                "SELECT (SELECT waiting FROM run), (SELECT sum(ready) FROM visit),"
                " (SELECT sum(length(keys)) / 10 FROM seen_lately)"
            )
        assert set(range(acknowledged)) <= numbers, "an acknowledged task is missing"
        assert waiting == ready == seen == len(numbers)
        assert len(numbers) % 5 == 0, "a batch is there in part"
    with capsys.disabled():
        print(f"\n6 kills, {acknowledged} acknowledged tasks, none missing")


async def open_with_three_leased(path: Path, clock: JumpClock, **rules: Any) -> SqliteEngine:
    engine = await open_sqlite(path, clock=clock)
    await engine.frontier.create_run(NewRun("run", "shop", Policy(**rules)))
    await engine.frontier.enqueue("run", [page(f"{name}.example/1") for name in "abc"])
    return engine


async def test_leases_of_a_killed_process_come_back_at_once(path: Path) -> None:
    """And only the task that it had in hand is charged with the crash."""
    clock = JumpClock(_now())
    engine = await open_with_three_leased(path, clock, delay=1_000)
    with process(HOLD, path, "b.example") as started:
        held = hear(started)
        assert (await engine.frontier.sweep()).returned == 0, "it is alive"
        kill(started)
    clock.advance(_now() - clock.now())
    swept = await engine.frontier.sweep()
    assert (swept.returned, swept.buried) == (3, 0)
    counts = (await engine.reader.run("run")).counters
    assert (counts.waiting, counts.leased, counts.crashes) == (3, 0, 1)
    me, notebook = liveness.introduce()
    ask = Ask(me, ("shop",), ("bulk",), {"default": ("direct",)}, 3)
    assert (await engine.frontier.exchange(ask)).leases == [], "its last request was sent before now"
    clock.advance(1_000 + transit_allowance(1_000) - 1)
    assert (await engine.frontier.exchange(ask)).leases == []
    clock.advance(1)
    leases = (await engine.frontier.exchange(ask)).leases
    crashes = {lease.task.site: lease.task.crashes for lease in leases}
    assert crashes == {"a.example": 0, "b.example": 1, "c.example": 0}
    assert {lease.task.id for lease in leases} == set(held["tasks"].values())
    notebook.close()
    Path(held["notebook"]).unlink()  # noqa: ASYNC240 - a test may touch files
    await engine.close()


async def test_without_a_notebook_every_task_is_charged(path: Path) -> None:
    clock = JumpClock(_now())
    engine = await open_with_three_leased(path, clock, crashes=1)
    with process(HOLD, path, "b.example") as started:
        held = hear(started)
        kill(started)
    Path(held["notebook"]).unlink()  # noqa: ASYNC240 - a test may touch files
    swept = await engine.frontier.sweep()
    assert (swept.returned, swept.buried) == (0, 3)
    await engine.close()


async def test_the_dead_do_not_settle(path: Path) -> None:
    """A process that was thought dead, and was only another's: its token no longer stands."""
    clock = JumpClock(_now())
    engine = await open_with_three_leased(path, clock, delay=0)
    me, notebook = liveness.introduce()
    gone = type(me)("gone", me.machine, me.pid, me.pid_started - 60_000)
    ask = Ask(gone, ("shop",), ("bulk",), {"default": ("direct",)}, 1)
    [lease] = (await engine.frontier.exchange(ask)).leases
    assert (await engine.frontier.sweep()).returned == 1, "that process id has belonged to another since"
    late = Settlement("run", lease.task.id, lease.token, Done((b"{}",)))
    assert (await engine.frontier.exchange(Ask(me, (), (), {}, 0, None, (late,)))).late == [lease.token]
    notebook.close()
    await engine.close()


async def test_processes_of_other_machines_are_not_judged(path: Path) -> None:
    clock = JumpClock(_now())
    engine = await open_with_three_leased(path, clock)
    me, notebook = liveness.introduce()
    elsewhere = type(me)("elsewhere", me.machine + "/other", 1 << 22, 1)
    ask = Ask(elsewhere, ("shop",), ("bulk",), {"default": ("direct",)}, 3)
    assert len((await engine.frontier.exchange(ask)).leases) == 3
    assert (await engine.frontier.sweep()).returned == 0
    notebook.close()
    await engine.close()


async def test_a_reboot_gives_everything_back_and_charges_nobody(path: Path) -> None:
    """The file is on a disk of this machine: whoever held leases before it was started anew is gone."""
    clock = JumpClock(_now())
    engine = await open_with_three_leased(path, clock, crashes=1)
    me, notebook = liveness.introduce()
    before = re.sub("boot=[^/]+", "boot=an-earlier-one", me.machine)
    ask = Ask(type(me)("before", before, me.pid, me.pid_started), ("shop",), ("bulk",), {"default": ("direct",)}, 3)
    assert len((await engine.frontier.exchange(ask)).leases) == 3
    swept = await engine.frontier.sweep()
    assert (swept.returned, swept.buried) == (3, 0)
    assert (await engine.reader.run("run")).counters.crashes == 0
    notebook.close()
    await engine.close()


class TestPresence:
    def test_this_process_lives(self) -> None:
        began = liveness.started(os.getpid())
        assert began
        assert not liveness.is_gone(os.getpid(), began)

    def test_another_process_with_the_same_number(self) -> None:
        began = liveness.started(os.getpid())
        assert began
        assert liveness.is_gone(os.getpid(), began - 60_000)

    def test_a_zombie_is_gone(self) -> None:
        started = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
        began = liveness.started(started.pid)
        assert started.stdout is not None
        started.stdout.read()
        os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and nobody has taken note
        assert liveness.is_gone(started.pid, began or 0)
        started.communicate()
        assert liveness.is_gone(started.pid, began or 0)

    def test_a_notebook_holds_what_is_in_hand(self, tmp_path: Path) -> None:
        notebook = liveness.Notebook(tmp_path / "hand")
        with notebook.holding(7), notebook.holding(9):
            assert liveness.read_notebook(str(notebook.path)) == frozenset({7, 9})
        assert liveness.read_notebook(str(notebook.path)) == frozenset()
        notebook.close()
        assert liveness.read_notebook(str(notebook.path)) is None
        assert liveness.read_notebook(None) is None

    def test_a_full_notebook_still_works(self, tmp_path: Path) -> None:
        notebook = liveness.Notebook(tmp_path / "hand")
        with contextlib.ExitStack() as stack:
            for task in range(1, liveness.PLACES + 10):
                stack.enter_context(notebook.holding(task))
            assert len(liveness.read_notebook(str(notebook.path)) or ()) == liveness.PLACES
        assert liveness.read_notebook(str(notebook.path)) == frozenset()
        notebook.close()

    def test_a_failing_block_leaves_no_note(self, tmp_path: Path) -> None:
        notebook = liveness.Notebook(tmp_path / "hand")
        with pytest.raises(KeyError), notebook.holding(7):
            raise KeyError
        assert liveness.read_notebook(str(notebook.path)) == frozenset()
        notebook.close()

    def test_two_workers_of_one_process_differ(self) -> None:
        (one, first), (two, second) = liveness.introduce(), liveness.introduce()
        assert one.worker_id != two.worker_id
        assert (one.machine, one.pid, one.pid_started) == (two.machine, two.pid, two.pid_started)
        first.close()
        second.close()


def _now() -> int:
    return SystemClock().now()

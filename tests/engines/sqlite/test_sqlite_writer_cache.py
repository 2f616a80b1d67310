"""What a process knows of sites by heart is what the file says, whoever writes to it and whatever is undone."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from shoal.core.task import DEFAULT_POOL, DIRECT, Lease, Policy
from shoal.errors import UsageError
from shoal.frontier.contract.frontier import Ask, NewRun, WorkerInfo
from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.frontier.sqlite.enqueue import enqueue
from shoal.frontier.sqlite.store.transaction import Transaction
from shoal.testing.contract.scene import done, page
from shoal.testing.jump_clock import JumpClock

ASK = Ask(WorkerInfo("w", "elsewhere", 1, 1), ("shop",), ("bulk",), {DEFAULT_POOL: (DIRECT,)}, 9)


@contextlib.asynccontextmanager
async def opened(path: Path, clock: JumpClock) -> AsyncIterator[SqliteEngine]:
    engine = await open_sqlite(path, clock=clock)
    try:
        yield engine
    finally:
        await engine.close()


async def visit(engine: SqliteEngine, run: str, url: str) -> Lease:
    """One page from start to end. Answers the lease it had."""
    await engine.frontier.enqueue(run, [page(url)])
    [lease] = (await engine.frontier.exchange(ASK)).leases
    await engine.frontier.exchange(msgspec.structs.replace(ASK, want=0, settlements=[done(lease)]))
    return lease


async def test_rules_that_another_process_has_changed_are_read_again(tmp_path: Path) -> None:
    clock = JumpClock()
    async with opened(tmp_path / "x.db", clock) as one, opened(tmp_path / "x.db", clock) as two:
        await one.frontier.create_run(NewRun("quick", "shop", Policy(delay=0)))
        await one.frontier.create_run(NewRun("slow", "shop", Policy(delay=60_000)))
        assert (await visit(one, "quick", "a.example/1")).delay == 0
        clock.advance(60_000)
        assert (await visit(two, "slow", "a.example/1")).delay == 60_000
        clock.advance(60_000)
        assert (await visit(one, "quick", "a.example/2")).delay == 0, "nothing was left there: the rules are set anew"


async def test_sites_of_a_call_that_was_undone_are_not_known(tmp_path: Path) -> None:
    async with opened(tmp_path / "x.db", JumpClock()) as engine:
        await engine.frontier.create_run(NewRun("run", "shop", Policy()))

        def put_and_fail(tx: Transaction) -> None:
            enqueue(tx, tx.find_run("run"), [page("a.example/1"), page("b.example/1")])
            raise UsageError("no")

        with pytest.raises(UsageError):
            await engine._writer.call(put_and_fail)
        assert (await visit(engine, "run", "b.example/1")).task.site == "b.example"
        assert (await visit(engine, "run", "a.example/1")).task.site == "a.example"

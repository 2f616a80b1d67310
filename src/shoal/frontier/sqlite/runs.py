"""The life of runs, and what becomes of their dead letters."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.core.task import RunState
from shoal.errors import BeingMoved, UsageError
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.contract.mover import Move, MoveState
from shoal.frontier.shared.move_packing import mark_of
from shoal.frontier.sqlite.enqueue import open_sites
from shoal.frontier.sqlite.records.endings import purge_letters
from shoal.frontier.sqlite.slots.delayed_tasks import make_ready
from shoal.frontier.sqlite.store.transaction import RunRow, Transaction, encode

ENDED = (RunState.FINISHED, RunState.CANCELLED)


def create_run(tx: Transaction, run: NewRun) -> None:
    """Make a run, unless there is one of that id."""
    tx.run(
        "create_run",
        run_id=run.run_id,
        scraper=run.scraper,
        mode=run.mode,
        queue=run.queue or run.run_id,
        policy=encode(run.policy).decode(),
        input=run.input,
        now=tx.now,
    )


def changeable(run: RunRow) -> RunRow:
    """The run, if it is not on its way between two stores. Raises BeingMoved."""
    if run.state is RunState.PAUSED and run.move is not None and run.move.on_its_way:
        raise BeingMoved(run.run_id, arriving=run.move.state is MoveState.ARRIVING)
    return run


def seal_run(tx: Transaction, run: RunRow) -> None:
    """Seeding is complete."""
    tx.run("seal_run", run=run.id)
    tx.runs[run.id]["waiting"] += 0  # so that a run with nothing to do is finished at once


def pause_run(tx: Transaction, run: RunRow) -> None:
    """Its own lines are held; in a shared queue, its tasks are set aside when a claim meets them."""
    if run.state in ENDED or run.state is RunState.PAUSED:
        return
    tx.run("pause_run", run=run.id)
    if run.queue == run.run_id:
        tx.run("hold_lines", queue=run.queue, held=True)


def resume_run(tx: Transaction, run: RunRow) -> None:
    """Undo pause. A run that was leaving stays."""
    if run.state is not RunState.PAUSED:
        return
    if run.move is not None and run.move.state is MoveState.ARRIVING:
        raise BeingMoved(run.run_id, arriving=True)
    if run.move is not None and run.move.state is MoveState.LEAVING:
        mark_run(tx, run, msgspec.structs.replace(run.move, state=MoveState.STAYED))
    go_on(tx, run)


def mark_run(tx: Transaction, run: RunRow, move: Move) -> None:
    """Note where the run is on its way between two stores."""
    tx.run("mark_run", run=run.id, move=mark_of(move))


def go_on(tx: Transaction, run: RunRow) -> None:
    """A paused run is released: its lines, and what was set aside."""
    tx.run("resume_run", run=run.id)
    if run.queue == run.run_id:
        tx.run("hold_lines", queue=run.queue, held=False)
    held = tx.rows("find_held", run=run.id)
    if held:
        make_ready(tx, held)
    tx.runs[run.id]["waiting"] += 0


def cancel_run(tx: Transaction, run: RunRow) -> None:
    """From now on nothing of it is claimed. Its waiting tasks end in the sweeps (or claims) that follow."""
    if run.state in ENDED:
        return
    tx.run("cancel_run", run=run.id, now=tx.now)
    if run.queue == run.run_id:
        tx.run("hold_lines", queue=run.queue, held=True)


def requeue_dead(tx: Transaction, run: RunRow, tasks: Sequence[int] | None) -> int:
    """Dead letters wait again, as new as on their first day."""
    if run.state is RunState.CANCELLED:
        raise UsageError(f"Run {run.run_id!r} was cancelled; its dead letters cannot be tried again.")
    rows = tx.rows("find_dead", run=run.id, tasks=None if tasks is None else list(tasks))
    if not rows:
        return 0
    open_sites(tx, run.policy, dict.fromkeys(key for *_, key in rows))
    numbers = [task for task, *_ in rows]
    tx.run("revive_tasks", tasks=numbers, is_job=run.is_job)
    tx.run("forget_dead", tasks=numbers)
    counts = tx.runs[run.id]
    counts["dead"] -= len(rows)
    counts["waiting"] += len(rows)
    for _, line, site, _ in rows:
        tx.lines[line]["waiting"] += 1
        tx.ready[line, site] += 1
    if run.state is RunState.FINISHED:
        tx.run("reopen_run", run=run.id)
    return len(rows)


def purge_dead(tx: Transaction, run: RunRow, tasks: Sequence[int] | None) -> int:
    """Forget dead letters, except that there were such."""
    numbers = [row[0] for row in tx.rows("find_dead", run=run.id, tasks=None if tasks is None else list(tasks))]
    if not numbers:
        return 0
    purge_letters(tx, numbers)
    return tx.run("forget_dead", tasks=numbers)


def delete_some(tx: Transaction, runs: Sequence[int], most: int) -> bool:
    """Delete what runs have left behind, at most so many rows of one kind. Answers whether there may be more.

    What they have seen must be in one place (`SeenLately.sort_all`).
    """
    left = {"runs": list(runs), "most": most}
    return (
        tx.run("delete_items_of", **left) == most
        or tx.run("delete_dead_of", **left) == most
        or tx.run("delete_endings_of", **left) == most
        or tx.run("delete_seen_of", **left) == most
    )


def forget_runs(tx: Transaction, runs: Sequence[int]) -> None:
    """Forget that there were these runs, of which nothing is left."""
    tx.run("forget_runs", runs=list(runs))

"""The life of runs, and what becomes of their dead letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from shoal.errors import UsageError
from shoal.frontier.protocol import NewRun
from shoal.frontier.sqlite.enqueue import open_sites
from shoal.frontier.sqlite.transaction import RunRow, Transaction, encode
from shoal.task import RunState

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
    """Undo pause: release its lines, and bring back what was set aside."""
    if run.state is not RunState.PAUSED:
        return
    tx.run("resume_run", run=run.id)
    if run.queue == run.run_id:
        tx.run("hold_lines", queue=run.queue, held=False)
    held = tx.rows("find_held", run=run.id)
    for _, line, site in held:
        tx.ready[line, site] += 1
    if held:
        tx.run("ready_tasks", tasks=[task for task, _, _ in held])
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
    numbers = [task for task, *_ in rows]
    tx.run("revive_tasks", tasks=numbers)
    tx.run("forget_dead", tasks=numbers)
    counts = tx.runs[run.id]
    counts["dead"] -= len(rows)
    counts["waiting"] += len(rows)
    for _, line, site, _ in rows:
        tx.lines[line]["waiting"] += 1
        tx.ready[line, site] += 1
    open_sites(tx, run.policy, [[key, load] for key, load in Counter(key for *_, key in rows).items()])
    if run.state is RunState.FINISHED:
        tx.run("reopen_run", run=run.id)
    return len(rows)


def purge_dead(tx: Transaction, run: RunRow, tasks: Sequence[int] | None) -> int:
    """Forget dead letters."""
    numbers = [row[0] for row in tx.rows("find_dead", run=run.id, tasks=None if tasks is None else list(tasks))]
    return tx.run("forget_dead", tasks=numbers) if numbers else 0

"""`shoal runs`, `stats`, `cancel`, `pause`, `resume`: what runs there are, and how to steer them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal import facts
from shoal.cli.estimate import as_data as eta_data
from shoal.cli.estimate import estimate_by, sentence
from shoal.cli.frame import say
from shoal.cli.opening import NO_RUNS, find_run, is_absent, with_engine
from shoal.cli.options import ConfigOption, EngineOption, JsonOption, OptionalRunArgument, RunArgument
from shoal.cli.summary import summary
from shoal.cli.text import duration, moment, print_json, print_line, table
from shoal.cli.workers import NO_WORKERS, print_workers
from shoal.errors import UsageError
from shoal.eta import PoliteETA
from shoal.frontier.engine import Engine
from shoal.frontier.protocol import Run
from shoal.frontier.reading import WorkerRecord
from shoal.settings_file import load
from shoal.task import RunState
from shoal.workers import is_left_alone, lives, state_of, takes_on

ENDED = (RunState.FINISHED, RunState.CANCELLED)


def runs(engine: EngineOption = None, config: ConfigOption = None, as_data: JsonOption = False) -> None:
    """List all runs, newest first.

    Example:

        shoal runs --json
    """
    found: list[Run] = []
    workers: Sequence[WorkerRecord] = ()
    if not is_absent(load(config, {"engine": engine})):
        found, workers = with_engine(engine, config, _all_runs)
    if as_data:
        print_json([facts.of_run(run) for run in found])
    elif not found:
        say(NO_RUNS)
    else:
        header = ("run", "scraper", "state", "started", "done", "items", "waiting", "dead")
        print_line(table(header, [_row(run) for run in found]))
        alone = sorted({run.scraper for run in found if is_left_alone(run, workers)})
        if alone:
            whose = ", ".join(alone)
            say(f"No live worker takes on what is left of {whose}. `shoal stats --workers` shows who is there.")


def stats(
    run: OptionalRunArgument = None,
    workers: Annotated[
        bool, typer.Option("--workers", help="List the workers instead; with RUN, those that take it on.")
    ] = False,
    engine: EngineOption = None,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """Show where a run stands, or who is at work.

    With --json: pending, claimed, completed, failed, remaining and every other count, how many live workers take the
    run on, and `eta`: how long it takes at least, and because of which site. With --workers: each worker with its
    machine, process, last sign of life, leases, and what it is doing.

    Example:

        shoal stats last --json
        shoal stats --workers
    """
    if workers:
        _show_workers(run, engine, config, as_data=as_data)
        return
    if run is None:
        raise UsageError("Name a run (`shoal stats last`), or ask for --workers.")
    settings = load(config, {"engine": engine})

    async def work(store: Engine) -> tuple[Run, Sequence[WorkerRecord], PoliteETA | None]:
        known = await find_run(store.reader, run)
        return known, await store.reader.workers(), await estimate_by(store, settings)(known)

    found, crew, eta = with_engine(engine, config, work)
    if as_data:
        able = [record for record in crew if takes_on(record, found) and lives(record)]
        print_json({**facts.of_run(found), "workers": len(able), "eta": eta_data(eta)})
        return
    end = found.ended_at
    print_line(summary(found, seconds=None if end is None else (end - found.created_at) / 1000))
    if eta is not None:
        print_line(f"At least {duration(eta.left / 1000)} more: {sentence(eta)}.")
    if is_left_alone(found, crew):
        how = f"shoal run TARGET --resume --run-id {found.run_id}"
        if found.mode == "distributed":
            how = f"shoal worker TARGET --run-id {found.run_id}"
        say(f"No live worker takes it on; TARGET being the file of {found.scraper!r}: {how}")


def cancel(run: RunArgument, engine: EngineOption = None, config: ConfigOption = None) -> None:
    """End a run for good: nothing more of it is fetched. Items that are stored stay.

    Example:

        shoal cancel last
    """

    async def work(store: Engine) -> None:
        found = await find_run(store.reader, run)
        if found.state in ENDED:
            raise UsageError(f"The run {found.run_id} is {found.standing}; there is nothing to cancel.")
        await store.frontier.cancel_run(found.run_id)
        say(f"Cancelled {found.run_id}. What it has found stays: `shoal export {found.run_id} -o items.jsonl`.")

    with_engine(engine, config, work)


def pause(run: RunArgument, engine: EngineOption = None, config: ConfigOption = None) -> None:
    """Let a run rest: what is in work is finished, nothing more is begun until `shoal resume`.

    Example:

        shoal pause last
    """

    async def work(store: Engine) -> None:
        found = await find_run(store.reader, run)
        if found.state in ENDED:
            raise UsageError(f"The run {found.run_id} is {found.standing} and cannot be paused.")
        await store.frontier.pause_run(found.run_id)
        say(f"Paused {found.run_id}. Go on with `shoal resume {found.run_id}`.")

    with_engine(engine, config, work)


def resume(run: RunArgument, engine: EngineOption = None, config: ConfigOption = None) -> None:
    """Let a paused run go on. Its workers take it up again; this command does not work itself.

    Example:

        shoal resume last
    """

    async def work(store: Engine) -> None:
        found = await find_run(store.reader, run)
        if found.state is not RunState.PAUSED:
            hint = "" if found.state in ENDED else " To work on it here, use `shoal run TARGET --resume`."
            raise UsageError(f"The run {found.run_id} is {found.standing}, not paused.{hint}")
        await store.frontier.resume_run(found.run_id)
        say(f"Resumed {found.run_id}. If no worker runs, start one with `shoal run TARGET --resume`.")

    with_engine(engine, config, work)


def _show_workers(run: str | None, engine: str | None, config: Path | None, *, as_data: bool) -> None:
    async def work(store: Engine) -> list[WorkerRecord]:
        records = await store.reader.workers()
        if run is None:
            return list(records)
        found = await find_run(store.reader, run)
        return [record for record in records if takes_on(record, found)]

    absent = run is None and is_absent(load(config, {"engine": engine}))
    records = [] if absent else with_engine(engine, config, work)
    if as_data:
        print_json([facts.of_worker(record, state_of(record).value) for record in records])
    elif not records:
        say(NO_WORKERS)
    else:
        print_workers(records)


async def _all_runs(store: Engine) -> tuple[list[Run], Sequence[WorkerRecord]]:
    return list(await store.reader.runs()), await store.reader.workers()


def _row(run: Run) -> tuple[Any, ...]:
    counts = run.counters
    started = moment(run.created_at)
    return (run.run_id, run.scraper, run.standing, started, counts.done, counts.items, counts.remaining, counts.dead)

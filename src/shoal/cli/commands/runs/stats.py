"""`shoal runs` and `shoal stats`: what runs there are, where each stands, and who works on them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.cli.output.exit_codes import say
from shoal.cli.output.summary import summary
from shoal.cli.output.text import count, duration, moment, print_json, print_line, table
from shoal.cli.output.worker_table import NO_WORKERS, print_workers
from shoal.cli.running.find_store import NO_RUNS, find_run, is_absent, same_store, with_engine
from shoal.cli.running.shared_options import ConfigOption, EngineOption, JsonOption, OptionalRunArgument
from shoal.config.load import load
from shoal.errors import UsageError
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Run
from shoal.frontier.contract.reader import WorkerRecord
from shoal.insight.polite_eta import PoliteETA
from shoal.insight.run_eta import estimate_by
from shoal.insight.workers import is_left_alone, lives, takes_on, worker_status
from shoal.runs.results import RunStatus, status_of
from shoal.work.process.run_halts import Halt, halt_of


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
        print_json([status_of(run, workers).as_dict() for run in found])
    elif not found:
        say(NO_RUNS)
    else:
        header = ("run", "scraper", "state", "started", "done", "items", "waiting", "dead")
        print_line(table(header, [_row(status_of(run, workers)) for run in found]))
        alone = sorted({run.scraper for run in found if is_left_alone(run, workers)})
        if alone:
            whose, workers_shown = ", ".join(alone), same_store(engine, config).of("stats", "--workers")
            say(f"No live worker takes on what is left of {whose}. `{workers_shown}` shows who is there.")


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

    async def work(store: Engine) -> tuple[Run, Sequence[WorkerRecord], PoliteETA | None, Halt | None]:
        known = await find_run(store.reader, run)
        halt = await halt_of(store.reader, store.cache, known.run_id)
        return known, await store.reader.workers(), await estimate_by(store, settings)(known), halt

    found, crew, eta, halt = with_engine(engine, config, work)
    if as_data:
        able = [record for record in crew if takes_on(record, found) and lives(record)]
        eta_told = None if eta is None else eta.as_dict()
        halted = None if halt is None else halt.sentence
        print_json(status_of(found, crew).as_dict() | {"workers": len(able), "eta": eta_told, "halted": halted})
        return
    status = status_of(found, crew)
    line = same_store(engine, config)
    print_line(summary(status, line, seconds=status.seconds))
    if halt is not None:
        print_line(halt.sentence)
    if eta is not None:
        print_line(f"At least {duration(eta.left / 1000)} more: {_why(eta)}.")
    if is_left_alone(found, crew):
        how = line.of("run", "TARGET", "--resume", "--run-id", found.run_id)
        if found.mode == "distributed":
            how = line.of("worker", "TARGET", "--run-id", found.run_id)
        say(f"No live worker takes it on; TARGET being the file of {found.scraper!r}: {how}")


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
        print_json([worker_status(record).as_dict() for record in records])
    elif not records:
        say(NO_WORKERS)
    else:
        print_workers([worker_status(record) for record in records])


async def _all_runs(store: Engine) -> tuple[list[Run], Sequence[WorkerRecord]]:
    return list(await store.reader.runs()), await store.reader.workers()


def _row(run: RunStatus) -> tuple[Any, ...]:
    started = moment(run.created_at)
    return (run.run_id, run.scraper, run.standing, started, run.completed, run.items, run.remaining, run.failed)


def _why(eta: PoliteETA) -> str:
    """Why it takes so long, in a few words."""
    pace = f"one request each {duration(eta.delay / 1000)}" if eta.delay else "without a delay"
    cause = f"; {eta.cause}" if eta.cause else ""
    return f"{eta.site} has {eta.waiting:,} waiting, {pace} by {count(eta.exits, 'exit')}{cause}"

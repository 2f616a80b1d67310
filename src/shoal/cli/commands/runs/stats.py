"""`shoal runs` and `shoal stats`: what runs there are, where each stands, and who works on them."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
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
from shoal.core.clock import SystemClock
from shoal.errors import UsageError
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Run
from shoal.frontier.contract.reader import WorkerRecord
from shoal.insight.polite_eta import PoliteETA
from shoal.insight.run_eta import estimate_by
from shoal.insight.workers import is_left_alone, lives, takes_on, worker_status
from shoal.runs.command_line import CommandLine
from shoal.runs.follow import snapshots
from shoal.runs.results import RunStatus, status_of
from shoal.work.process.run_halts import Halt, halt_of

WATCH_EVERY = 2.0
"""Seconds between two looks."""

CLEAR = "\x1b[H\x1b[2J"


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
    watch: Annotated[
        bool, typer.Option("--watch", help="Show it again every two seconds, until the run ends or Ctrl-C.")
    ] = False,
    engine: EngineOption = None,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """Show where a run stands, or who is at work.

    With --json: pending, claimed, completed, failed, remaining and every other count, how many live workers take the
    run on, and `eta`: how long it takes at least, and because of which site. With --workers: each worker with its
    machine, process, last sign of life, leases, and what it is doing. With --watch and --json: one object per line.

    Example:

        shoal stats last --json
        shoal stats last --watch
        shoal stats --workers
    """
    if workers:
        if watch:
            raise UsageError("--watch is for a run: name one, without --workers.")
        _show_workers(run, engine, config, as_data=as_data)
        return
    if run is None:
        raise UsageError("Name a run (`shoal stats last`), or ask for --workers.")
    settings = load(config, {"engine": engine})
    line = same_store(engine, config)

    async def work(store: Engine) -> None:
        found = await find_run(store.reader, run)
        async for snapshot in snapshots(store.reader, found.run_id, SystemClock(), WATCH_EVERY):
            halt = await halt_of(store.reader, store.cache, snapshot.run_id)
            eta = await estimate_by(store, settings)(snapshot)
            seen = _Standing(snapshot, await store.reader.workers(), eta, halt)
            if as_data:
                print_json(seen.as_dict(), indent=not watch)
            else:
                if watch and sys.stdout.isatty():
                    sys.stdout.write(CLEAR)
                seen.show(line)
            if not watch or snapshot.ended_at is not None:
                return
            sys.stdout.flush()

    with_engine(engine, config, work)


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where a run stands, and who works on it. `eta`, `halt`: None = nothing is known to hold it up."""

    run: Run
    crew: Sequence[WorkerRecord]
    eta: PoliteETA | None
    halt: Halt | None

    def as_dict(self) -> dict[str, Any]:
        able = [record for record in self.crew if takes_on(record, self.run) and lives(record)]
        return status_of(self.run, self.crew).as_dict() | {
            "workers": len(able),
            "eta": None if self.eta is None else self.eta.as_dict(),
            "halted": None if self.halt is None else self.halt.sentence,
        }

    def show(self, line: CommandLine) -> None:
        status = status_of(self.run, self.crew)
        print_line(summary(status, line, seconds=status.seconds))
        if self.halt is not None:
            print_line(self.halt.sentence)
        if self.eta is not None:
            print_line(f"At least {duration(self.eta.left / 1000)} more: {_why(self.eta)}.")
        if is_left_alone(self.run, self.crew):
            how = line.of("run", "TARGET", "--resume", "--run-id", self.run.run_id)
            if self.run.mode == "distributed":
                how = line.of("worker", "TARGET", "--run-id", self.run.run_id)
            say(f"No live worker takes it on; TARGET being the file of {self.run.scraper!r}: {how}")


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

"""`shoal move`."""

import shlex
from dataclasses import asdict
from typing import Annotated, Any

import typer

from shoal.cli.output.exit_codes import say
from shoal.cli.output.text import count, print_json
from shoal.cli.running.find_store import NO_RUNS, find_run, is_absent
from shoal.cli.running.shared_options import ConfigOption, QuietOption, duration
from shoal.config.load import load
from shoal.config.secret_key import secret_box
from shoal.config.settings import Settings, mask_url
from shoal.core.task import RunState
from shoal.errors import UnknownRun, UsageError
from shoal.frontier.contract.frontier import Run
from shoal.frontier.contract.mover import MoveState
from shoal.frontier.contract.reader import Reader
from shoal.frontier.open import open_engine
from shoal.runs.event_loop import in_loop
from shoal.runs.relocate import Journey, Moved, Place

ENDED = (RunState.FINISHED, RunState.CANCELLED)


def move(
    to: Annotated[str, typer.Option("--to", metavar="URL", help="The engine that the run goes on in.")],
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", help="A run's id, or the beginning of one. Default: the only unfinished one."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="The engine that the run is in. Default: setting `engine`."),
    ] = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="DURATION", parser=duration, help="How long workers may take to finish.")
    ] = 120.0,
    config: ConfigOption = None,
    quiet: QuietOption = False,
    as_data: Annotated[bool, typer.Option("--json", help="Print what was moved as JSON on stdout.")] = False,
) -> None:
    """Carry a run to another engine, with its waiting tasks, clocks, known URLs, items and dead letters.

    Nothing of the run is fetched meanwhile, and it is never open in both: workers finish what they have in hand, all is
    copied and compared, then it ends in the old engine and opens in the new one. Interrupted, give the same command
    again, or go on in the old engine with `shoal run --resume`.

    Example:

        shoal move --from sqlite:///shoal.db --to postgresql://user@host/crawl
    """
    settings = load(config, {"engine": source})
    if is_absent(settings):
        raise UsageError(f"{NO_RUNS} (There is no {mask_url(settings.engine)} here.)")
    in_loop(_move(settings, to, run, wait, quiet=quiet, as_data=as_data))


async def _move(settings: Settings, to: str, run: str | None, wait: float, *, quiet: bool, as_data: bool) -> None:
    source = settings.engine
    old = Place(await open_engine(source, create=False), mask_url(source), secret_box(settings))
    try:
        there = settings.model_copy(update={"engine": to})
        new = Place(await open_engine(to), mask_url(to), secret_box(there))
        try:
            chosen = await _chosen(old, new, run)
            report = _nothing if quiet else say
            moved = await Journey(chosen.run_id, old, new, round(wait * 1000), report).make()
            if as_data:
                print_json(_as_json(chosen.run_id, old, new, moved))
            elif not quiet:
                say(_summary(chosen, old, new, moved))
        finally:
            await new.engine.close()
    finally:
        await old.engine.close()


async def _chosen(old: Place, new: Place, text: str | None) -> Run:
    if text is not None:
        return await find_run(old.engine.reader, text)
    runs = await old.engine.reader.runs()
    unfinished = [run for run in runs if run.state not in ENDED]
    if len(unfinished) > 1:
        names = ", ".join(run.run_id for run in unfinished[:5])
        raise UsageError(f"{old.shown} has {len(unfinished)} unfinished runs ({names}…); name the one to be moved.")
    if unfinished:
        return unfinished[0]
    for run in runs:  # ended here by a move that was cut short before it was opened there
        if run.move is not None and run.move.state is MoveState.LEFT and await _is_arriving(new.engine.reader, run):
            return run
    raise UsageError(f"{old.shown} has no unfinished run to be moved.")


async def _is_arriving(reader: Reader, run: Run) -> bool:
    try:
        there = await reader.run(run.run_id)
    except UnknownRun:
        return False
    return there.move is not None and there.move.state is MoveState.ARRIVING


def _summary(run: Run, old: Place, new: Place, moved: Moved | None) -> str:
    go_on = shlex.join(["shoal", "worker", "TARGET", "--engine", new.shown])
    head = f"{run.run_id} went from {old.shown} to {new.shown}"
    if moved is None:
        return f"{head}; it was all there, and is open now. Work on it with `{go_on}`."
    parts = (
        count(moved.tasks, "waiting task"),
        count(moved.items, "item"),
        count(moved.seen, "known URL"),
        count(moved.dead, "dead letter"),
        f"the clocks of {count(moved.sites, 'site')}",
    )
    return f"{head}: {', '.join(parts)}. Work on it with `{go_on}`."


def _as_json(run_id: str, old: Place, new: Place, moved: Moved | None) -> dict[str, Any]:
    """`moved`: false = an earlier call had carried everything."""
    where = {"run_id": run_id, "from": old.shown, "to": new.shown, "moved": moved is not None}
    return where if moved is None else where | {k: v for k, v in asdict(moved).items() if k != "batches"}


def _nothing(_: str) -> None: ...

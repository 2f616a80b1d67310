"""`shoal runs`, `stats`, `cancel`, `pause`, `resume`: what runs there are, and how to steer them."""

from typing import Any

from shoal.cli.frame import say
from shoal.cli.opening import NO_RUNS, find_run, is_absent, with_engine
from shoal.cli.options import ConfigOption, EngineOption, JsonOption, RunArgument
from shoal.cli.settings_file import load
from shoal.cli.summary import as_json, summary
from shoal.cli.text import moment, print_json, print_line, table
from shoal.errors import UsageError
from shoal.frontier.protocol import Engine, Run
from shoal.task import RunState

ENDED = (RunState.FINISHED, RunState.CANCELLED)


def runs(engine: EngineOption = None, config: ConfigOption = None, as_data: JsonOption = False) -> None:
    """List all runs, newest first.

    Example:

        shoal runs --json
    """
    found = [] if is_absent(load(config, {"engine": engine})) else with_engine(engine, config, _all_runs)
    if as_data:
        print_json([as_json(run) for run in found])
    elif not found:
        say(NO_RUNS)
    else:
        header = ("run", "scraper", "state", "started", "done", "items", "waiting", "dead")
        print_line(table(header, [_row(run) for run in found]))


def stats(
    run: RunArgument, engine: EngineOption = None, config: ConfigOption = None, as_data: JsonOption = False
) -> None:
    """Show where a run stands.

    With --json: pending, claimed, completed, failed, remaining and every other count.

    Example:

        shoal stats last --json
    """

    async def work(store: Engine) -> Run:
        return await find_run(store.reader, run)

    found = with_engine(engine, config, work)
    if as_data:
        print_json(as_json(found))
        return
    end = found.ended_at
    print_line(summary(found, seconds=None if end is None else (end - found.created_at) / 1000))


def cancel(run: RunArgument, engine: EngineOption = None, config: ConfigOption = None) -> None:
    """End a run for good: nothing more of it is fetched. Items that are stored stay.

    Example:

        shoal cancel last
    """

    async def work(store: Engine) -> None:
        found = await find_run(store.reader, run)
        if found.state in ENDED:
            raise UsageError(f"The run {found.run_id} is {found.state.value}; there is nothing to cancel.")
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
            raise UsageError(f"The run {found.run_id} is {found.state.value} and cannot be paused.")
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
            raise UsageError(f"The run {found.run_id} is {found.state.value}, not paused.{hint}")
        await store.frontier.resume_run(found.run_id)
        say(f"Resumed {found.run_id}. If no worker runs, start one with `shoal run TARGET --resume`.")

    with_engine(engine, config, work)


async def _all_runs(store: Engine) -> list[Run]:
    return list(await store.reader.runs())


def _row(run: Run) -> tuple[Any, ...]:
    counts = run.counters
    started = moment(run.created_at)
    return (run.run_id, run.scraper, run.state.value, started, counts.done, counts.items, counts.remaining, counts.dead)

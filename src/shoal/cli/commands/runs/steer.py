"""`shoal cancel`, `pause`, `resume`: steering a run."""

from shoal.cli.output.exit_codes import say
from shoal.cli.running.find_store import find_run, same_store, with_engine
from shoal.cli.running.shared_options import ConfigOption, EngineOption, RunArgument
from shoal.core.task import RunState
from shoal.errors import UsageError
from shoal.frontier.contract.engine import Engine
from shoal.runs.run_request import ENDED


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
        command = same_store(engine, config).of("export", found.run_id, "-o", "items.jsonl")
        say(f"Cancelled {found.run_id}. What it has found stays: `{command}`.")

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
        say(f"Paused {found.run_id}. Go on with `{same_store(engine, config).of('resume', found.run_id)}`.")

    with_engine(engine, config, work)


def resume(run: RunArgument, engine: EngineOption = None, config: ConfigOption = None) -> None:
    """Let a paused run go on. Its workers take it up again; this command does not work itself.

    Example:

        shoal resume last
    """

    async def work(store: Engine) -> None:
        found = await find_run(store.reader, run)
        command = same_store(engine, config).of("run", "TARGET", "--resume", "--run-id", found.run_id)
        if found.state is not RunState.PAUSED:
            hint = "" if found.state in ENDED else f" To work on it here, use `{command}`."
            raise UsageError(f"The run {found.run_id} is {found.standing}, not paused.{hint}")
        await store.frontier.resume_run(found.run_id)
        say(f"Resumed {found.run_id}. If no worker runs, start one with `{command}`.")

    with_engine(engine, config, work)

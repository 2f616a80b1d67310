"""`shoal dead list|show|requeue|purge`: tasks that will not be tried again, and what to do about them."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import typer

from shoal.cli.output.exit_codes import say
from shoal.cli.output.text import count, moment, plain, print_json, print_line, table
from shoal.cli.running.find_store import find_run, same_store, with_engine
from shoal.cli.running.shared_options import ConfigOption, EngineOption, JsonOption, RunArgument, YesOption
from shoal.core.clock import iso
from shoal.core.url import without_credentials
from shoal.errors import UsageError
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.reader import DeadLetter, Reader

app = typer.Typer(help="Dead letters: tasks that will not be tried again, and why.", no_args_is_help=True)

TasksArgument = Annotated[
    list[int] | None, typer.Argument(metavar="[TASK…]", help="Numbers of tasks, from `shoal dead list`. Default: all.")
]
PAGE = 1000


@app.command("list")
def list_(
    run: RunArgument,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most this many.")] = 100,
    engine: EngineOption = None,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """List the dead letters of a run with their reasons.

    Example:

        shoal dead list last
    """

    async def work(store: Engine) -> tuple[str, int, list[DeadLetter]]:
        found = await find_run(store.reader, run)
        letters = [letter async for letter in _letters(store.reader, found.run_id, limit)]
        return found.run_id, found.counters.dead, letters

    run_id, total, letters = with_engine(engine, config, work)
    if as_data:
        print_json([_as_json(letter) for letter in letters])
        return
    if not letters:
        gone = f" ({count(total, 'dead letter')} purged or requeued)" if total else ""
        say(f"The run {run_id} has no dead letters{gone}.")
        return
    rows = [
        (letter.task, letter.reason.blame.value, letter.reason.text, without_credentials(letter.url))
        for letter in letters
    ]
    print_line(table(("task", "blame", "reason", "url"), rows))
    if total > len(letters):
        say(f"{len(letters)} of {total:,} shown; see more with --limit {total}.")
    line = same_store(engine, config)
    closer, again = line.of("dead", "show", run_id, "TASK"), line.of("dead", "requeue", run_id)
    say(f"Look closer with `{closer}`, try again with `{again}`.")


@app.command()
def show(
    run: RunArgument,
    task: Annotated[int, typer.Argument(metavar="TASK", help="Number of the task, from `shoal dead list`.")],
    engine: EngineOption = None,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """Show all that is known about one dead letter.

    Example:

        shoal dead show last 17
    """

    async def work(store: Engine) -> DeadLetter:
        found = await find_run(store.reader, run)
        letters = await store.reader.dead(found.run_id, after=task - 1, limit=1)
        if not letters or letters[0].task != task:
            raise UsageError(f"The run {found.run_id} has no dead letter {task}; `shoal dead list` shows those it has.")
        return letters[0]

    letter = with_engine(engine, config, work)
    if as_data:
        print_json(_as_json(letter))
        return
    print_line(f"task      {letter.task}")
    print_line(f"url       {plain(without_credentials(letter.url))}")
    print_line(f"site      {letter.site}")
    print_line(f"lane      {letter.lane}")
    print_line(f"handler   {letter.handler or '(default)'}")
    print_line(f"tried     {count(letter.attempts, 'time')}, {count(letter.crashes, 'crash', 'crashes')}")
    print_line(f"died      {moment(letter.died_at)}")
    print_line(f"blame     {letter.reason.blame.value}")
    print_line(f"reason    {plain(letter.reason.text)}")
    for line in (letter.reason.detail or "").splitlines():
        print_line(f"          {plain(line)}")
    if letter.reason.traceback is not None:
        print_line("")
        for line in letter.reason.traceback.splitlines():
            print_line(plain(line))


@app.command()
def requeue(
    run: RunArgument, tasks: TasksArgument = None, engine: EngineOption = None, config: ConfigOption = None
) -> None:
    """Let dead letters wait again, as if they had never been tried. A run that was finished is open again.

    Example:

        shoal dead requeue last
    """

    async def work(store: Engine) -> None:
        found = await find_run(store.reader, run)
        number = await store.frontier.requeue_dead(found.run_id, tasks or None)
        if tasks and number < len(set(tasks)):
            say(f"{len(set(tasks)) - number} of the named tasks are no dead letters of this run.")
        command = same_store(engine, config).of("run", "TARGET", "--resume", "--run-id", found.run_id)
        next_step = f" Work on them with `{command}`." if number else ""
        say(f"{count(number, 'dead letter')} of {found.run_id} wait again.{next_step}")

    with_engine(engine, config, work)


@app.command()
def purge(
    run: RunArgument,
    tasks: TasksArgument = None,
    yes: YesOption = False,
    engine: EngineOption = None,
    config: ConfigOption = None,
) -> None:
    """Forget dead letters. They stay counted as dead, but can be neither looked at nor tried again.

    Example:

        shoal dead purge last --yes
    """

    async def work(store: Engine) -> None:
        found = await find_run(store.reader, run)
        if not yes and not tasks:
            raise UsageError(f"This forgets all dead letters of {found.run_id}; add --yes if that is meant.")
        number = await store.frontier.purge_dead(found.run_id, tasks or None)
        say(f"{count(number, 'dead letter')} of {found.run_id} forgotten.")

    with_engine(engine, config, work)


async def _letters(reader: Reader, run_id: str, limit: int) -> AsyncIterator[DeadLetter]:
    """Up to `limit` dead letters, by task number."""
    after = 0
    while limit > 0:
        page = await reader.dead(run_id, after=after, limit=min(limit, PAGE))
        if not page:
            return
        for letter in page:
            yield letter
        after = page[-1].task
        limit -= len(page)


def _as_json(letter: DeadLetter) -> dict[str, Any]:
    return {
        "task": letter.task,
        "url": without_credentials(letter.url),
        "site": letter.site,
        "lane": letter.lane,
        "handler": letter.handler,
        "attempts": letter.attempts,
        "crashes": letter.crashes,
        "blame": letter.reason.blame.value,
        "reason": letter.reason.text,
        "detail": letter.reason.detail,
        "traceback": letter.reason.traceback,
        "died_at": iso(letter.died_at),
    }

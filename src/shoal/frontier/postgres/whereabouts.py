"""Where a page is: which runs have seen it, and what became of it there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from shoal.core.clock import Moment
from shoal.core.task import RunState, State
from shoal.frontier.contract.reader import Whereabouts
from shoal.frontier.shared.endings import last_of, names_of
from shoal.frontier.shared.whereabouts_rows import PageInRun, TaskOfPage

LEASED, DEAD_LETTER, ENDED = 2, 4, 5
"""How `read_whereabouts` marks these, beside other states of tasks."""


async def find_page(
    look: Callable[..., Awaitable[list[Any]]], now: Moment | None, site: str, url: str, key: bytes, run_id: str | None
) -> list[Whereabouts]:
    """Its place in each run that has seen its key (as `shoal.frontier.shared.seen` makes it), newest run first."""
    rows = await look("read_whereabouts", now, site, url, list(names_of(url)), key, run_id)
    found: dict[str, list[Whereabouts]] = {}
    for row in rows:
        place = _place(*row)
        found.setdefault(place.run_id, []).append(place)
    return [last_of(places) for places in found.values()]


def _place(run_id: str, scraper: str, run_state: str, state: int | None, *row: Any) -> Whereabouts:
    run = PageInRun(run_id, scraper, RunState(run_state))
    if state is None:
        return run.done()
    *task, ended = row
    kinds = {LEASED: State.LEASED, DEAD_LETTER: State.DEAD, ENDED: State(ended)}
    return TaskOfPage(*task).whereabouts(run, kinds.get(state, State.WAITING))

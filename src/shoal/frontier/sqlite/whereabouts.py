"""Where a page is: which runs have seen it, and what became of it there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.core.clock import Moment
from shoal.core.outcome import Reason
from shoal.core.task import NO_EXTRA, Extra, RunState, State, accepted_url
from shoal.frontier.contract.reader import Whereabouts
from shoal.frontier.shared.endings import last_of, names_of, page_of
from shoal.frontier.shared.seen import SEEN_BYTES
from shoal.frontier.shared.whereabouts_rows import PageInRun, TaskOfPage
from shoal.frontier.sqlite.store.transaction import LEASED

Look = Callable[..., list[Any]]
"""A statement by name, with its values."""

DEAD = 4
"""How `find_task_of_url` marks a dead letter, beside the states of tasks."""

_reason = msgspec.json.Decoder(Reason)
_extra = msgspec.json.Decoder(Extra)


def find_page(look: Look, now: Moment, site: str, url: str, key: bytes, run_id: str | None) -> list[Whereabouts]:
    """Its place in each run that has seen its key (as `shoal.frontier.shared.seen` makes it), newest run first."""
    runs = {run for (run,) in look("find_runs_of_key", key=key, run_id=run_id)}
    runs |= {run for run, keys in look("find_key_lately", key=key, run_id=run_id) if _contains(keys, key)}
    numbers = msgspec.json.encode(list(runs)).decode()
    tail = url.partition("//")[2]
    told = msgspec.json.encode(tail).decode()[1:-1]
    known: dict[int, PageInRun] = {}
    found: dict[int, list[Whereabouts]] = {}
    for number, name, scraper, run_state, state, *task, spelling, extra in look(
        "find_task_of_url", runs=numbers, site=site, tail=tail, told=told
    ):
        run = known[number] = PageInRun(name, scraper, RunState(run_state))
        places = found.setdefault(number, [])
        more = NO_EXTRA if extra is None else _extra.decode(extra)
        if spelling is not None and page_of(spelling, more) == url:
            places.append(_place(now, run, state, TaskOfPage._make([*task, accepted_url(spelling, more)])))
    first, second = names_of(url)
    for number, state, ended_at, reason, spelling in look("find_endings", runs=numbers, first=first, second=second):
        found[number].append(_ended(known[number], state, ended_at, reason, spelling or url))
    return [last_of(places or [known[number].done()]) for number, places in found.items()]


def _contains(keys: bytes, key: bytes) -> bool:
    return any(keys[at : at + SEEN_BYTES] == key for at in range(0, len(keys), SEEN_BYTES))


def _place(now: Moment, run: PageInRun, state: int, task: TaskOfPage) -> Whereabouts:
    where = State.DEAD if state == DEAD else State.LEASED if state == LEASED else State.WAITING
    if where is State.WAITING and task.expires_at is not None and task.expires_at <= now:
        return task._replace(ended_at=task.expires_at).whereabouts(run, State.EXPIRED)
    return task.whereabouts(run, where)


def _ended(run: PageInRun, state: str, ended_at: Moment, reason: str | None, url: str) -> Whereabouts:
    why = None if reason is None else _reason.decode(reason)
    return Whereabouts(run.run_id, run.scraper, run.state, State(state), reason=why, ended_at=ended_at, url=url)

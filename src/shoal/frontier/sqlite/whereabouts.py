"""Where a page is: which runs have seen it, and what became of it there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.clock import Moment
from shoal.frontier.endings import accepted_url, last_of, names_of, page_of
from shoal.frontier.reading import Whereabouts
from shoal.frontier.seen import SEEN_BYTES
from shoal.frontier.sqlite.transaction import LEASED
from shoal.outcome import Reason
from shoal.task import NO_EXTRA, Extra, RunState, State

Look = Callable[..., list[Any]]
"""A statement by name, with its values."""

DEAD = 4
"""How `find_task_of_url` marks a dead letter, beside the states of tasks."""

_reason = msgspec.json.Decoder(Reason)
_extra = msgspec.json.Decoder(Extra)


def find_url(look: Look, now: Moment, site: str, url: str, key: bytes, run_id: str | None) -> list[Whereabouts]:
    """Its place in each run that has seen its key (as `shoal.frontier.seen` makes it), newest run first."""
    runs = {run for (run,) in look("find_runs_of_key", key=key, run_id=run_id)}
    runs |= {run for run, keys in look("find_key_lately", key=key, run_id=run_id) if _contains(keys, key)}
    numbers = msgspec.json.encode(list(runs)).decode()
    tail = url.partition("//")[2]
    told = msgspec.json.encode(tail).decode()[1:-1]
    known: dict[int, tuple[str, str, RunState]] = {}
    found: dict[int, list[Whereabouts]] = {}
    for row in look("find_task_of_url", runs=numbers, site=site, tail=tail, told=told):
        number, run, task, (spelling, extra) = row[0], row[1:4], row[4:-2], row[-2:]
        known[number] = run[0], run[1], RunState(run[2])
        places = found.setdefault(number, [])
        more = NO_EXTRA if extra is None else _extra.decode(extra)
        if spelling is not None and page_of(spelling, more) == url:
            places.append(_place(now, *known[number], *task, accepted_url(spelling, more)))
    first, second = names_of(url)
    for number, *ending in look("find_endings", runs=numbers, first=first, second=second):
        found[number].append(_ended(*known[number], *ending, url))
    return [last_of(places or [Whereabouts(*known[number], State.DONE)]) for number, places in found.items()]


def _contains(keys: bytes, key: bytes) -> bool:
    return any(keys[at : at + SEEN_BYTES] == key for at in range(0, len(keys), SEEN_BYTES))


def _place(now: Moment, run_id: str, scraper: str, run: RunState, state: int, *rest: Any) -> Whereabouts:
    task, lane, pool, ahead, not_before, expires_at, attempts, crashes, worker, exit_, lease_until, *ended = rest
    reason, ended_at, url = ended
    where = State.DEAD if state == DEAD else State.LEASED if state == LEASED else State.WAITING
    if where is State.WAITING and expires_at is not None and expires_at <= now:
        where, ended_at = State.EXPIRED, expires_at
    return Whereabouts(
        run_id,
        scraper,
        run,
        where,
        task,
        lane,
        pool,
        ahead,
        not_before,
        expires_at,
        attempts,
        crashes,
        worker,
        exit_,
        lease_until,
        held=where is State.WAITING and run is RunState.PAUSED,
        reason=None if reason is None else _reason.decode(reason),
        ended_at=ended_at,
        url=url,
    )


def _ended(run_id: str, scraper: str, run: RunState, *ending: Any) -> Whereabouts:
    state, ended_at, reason, spelling, page = ending
    why = None if reason is None else _reason.decode(reason)
    return Whereabouts(run_id, scraper, run, State(state), reason=why, ended_at=ended_at, url=spelling or page)

"""Where a URL is: which runs have seen it, and what became of it there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.frontier.protocol import Whereabouts
from shoal.frontier.seen import SEEN_BYTES
from shoal.frontier.sqlite.transaction import LEASED
from shoal.outcome import Reason
from shoal.task import RunState, State

Look = Callable[..., list[Any]]
"""A statement by name, with its values."""

DEAD = 4
"""How `find_task_of_url` marks a dead letter, beside the states of tasks."""

_reason = msgspec.json.Decoder(Reason)


def find_url(look: Look, site: str, url: str, key: bytes, run_id: str | None) -> list[Whereabouts]:
    """Its place in each run that has seen its key (as `shoal.frontier.seen` makes it), newest run first."""
    runs = {run for (run,) in look("find_runs_of_key", key=key, run_id=run_id)}
    runs |= {run for run, keys in look("find_key_lately", key=key, run_id=run_id) if _contains(keys, key)}
    found: dict[str, Whereabouts] = {}
    for row in look("find_task_of_url", runs=msgspec.json.encode(list(runs)).decode(), site=site, url=url):
        place = _place(*row)
        found.setdefault(place.run_id, place)
    return list(found.values())


def _contains(keys: bytes, key: bytes) -> bool:
    return any(keys[at : at + SEEN_BYTES] == key for at in range(0, len(keys), SEEN_BYTES))


def _place(run_id: str, scraper: str, run_state: str, state: int | None, *rest: Any) -> Whereabouts:
    task, lane, pool, ahead, not_before, expires_at, attempts, crashes, worker, exit_, lease_until, reason = rest
    run = RunState(run_state)
    if state is None:
        return Whereabouts(run_id, scraper, run, None)
    where = State.DEAD if state == DEAD else State.LEASED if state == LEASED else State.WAITING
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
    )

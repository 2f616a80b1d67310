"""Redirects over several leases: how far a task has come is in the shared cache; the task stays what was asked for.

So another attempt, and a dead letter that is put back, begin at the beginning, with the method and body of then.
"""

from __future__ import annotations

import msgspec

from shoal.core.clock import Millis
from shoal.core.notes import Entry
from shoal.core.task import Extra, Task

KEPT: Millis = 3600 * 1000
"""A task that has no lease for so long begins at the beginning: what a redirect names may not be good for longer."""


class Waypoint(msgspec.Struct, frozen=True, array_like=True):
    """Where redirects within its site have led a task. `as_get`: its request has become a GET without a body."""

    url: str
    redirects: int
    as_get: bool


_decode = msgspec.msgpack.Decoder(Waypoint).decode


def waypoint_key(task: Task) -> str:
    """Where it is kept: beside its site, so that the next lease of the task finds it."""
    return f"{task.site} way:{task.run_id} {task.id}"


def waypoint_entry(task: Task, waypoint: Waypoint) -> Entry:
    """It as the cache keeps it."""
    return Entry(waypoint_key(task), msgspec.msgpack.encode(waypoint), KEPT)


def read_waypoint(value: bytes | None) -> Waypoint | None:
    """None = there is none, or it was written by another version."""
    try:
        return None if value is None else _decode(value)
    except msgspec.MsgspecError:
        return None


def turns_to_get(status: int, method: str) -> bool:
    """Whether a redirect makes a request a GET without its body: as the Fetch standard has it, and so browsers."""
    if status == 303:
        return method not in ("GET", "HEAD")
    return status in (301, 302) and method == "POST"


def as_get(extra: Extra) -> Extra:
    """The same request as a GET: what its headers say about the body goes with it."""
    headers = {name: value for name, value in (extra.headers or {}).items() if not name.lower().startswith("content-")}
    return msgspec.structs.replace(extra, method="GET", body=None, headers=headers or None)

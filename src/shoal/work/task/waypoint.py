"""Redirects over several leases: how far a task has come is in the shared cache; the task stays what was asked for.

So another attempt, and a dead letter that is put back, begin at the beginning, with the method and body of then.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from shoal.core.clock import Millis
from shoal.core.notes import Entry
from shoal.core.task import REDIRECTS, Extra, Hop, Task
from shoal.core.url import without_credentials

KEPT: Millis = 3600 * 1000
"""A task that has no lease for so long begins at the beginning: what a redirect names may not be good for longer."""


LONGEST_HEADERS = 4000
"""Characters of headers that are remembered of one redirect."""


class Waypoint(msgspec.Struct, frozen=True, array_like=True):
    """Where redirects within its site have led a task. `as_get`: its request has become a GET without a body.

    `history`: those that were followed, other sites' before it included.
    """

    url: str
    redirects: int
    as_get: bool
    history: tuple[Hop, ...] = ()


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
    """Whether a redirect makes a request a GET without its body: as the Fetch standard has it, and so browsers.

    What a page with another status than those leads to by itself (`meta refresh`) is always asked for so.
    """
    if status == 303 or status not in REDIRECTS:
        return method not in ("GET", "HEAD")
    return status in (301, 302) and method == "POST"


def hop_of(url: str, status: int, headers: Mapping[str, str]) -> Hop:
    """One step of the way, of a size that can travel with a task: what is too long is left away, and so are cookies."""
    kept: dict[str, str] = {}
    left = LONGEST_HEADERS
    for name, value in headers.items():
        left -= len(name) + len(value)
        if left < 0:
            break
        if not name.lower().startswith("set-cookie"):
            kept[str(name)] = value.encode("utf-8", "replace").decode().replace("\0", "")
    return Hop(without_credentials(url), status, kept)


def as_get(extra: Extra) -> Extra:
    """The same request as a GET: what its headers say about the body goes with it."""
    headers = {name: value for name, value in (extra.headers or {}).items() if not name.lower().startswith("content-")}
    return msgspec.structs.replace(extra, method="GET", body=None, headers=headers or None)

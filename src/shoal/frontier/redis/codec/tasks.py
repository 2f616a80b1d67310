"""Tasks as the scripts keep them: what moves a task apart, and the rest as one packed body; keys that were seen."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import msgspec

from shoal.core.task import NO_EXTRA, NewTask
from shoal.frontier.redis.codec.encoding import encode, opaque
from shoal.frontier.shared.endings import names_of, page_of

_json = msgspec.json.encode

SEEN_BUCKETS = 1 << 14
"""The keys that a run has seen are kept as 64-bit numbers in so many sets: the bits that `seen_key` keeps."""

_KEY = struct.Struct(">qH")
BUCKETS = [f"{number:x}" for number in range(SEEN_BUCKETS)]
"""The names of those sets."""


class Body(msgspec.Struct, array_like=True, frozen=True):
    """The part of a task that only workers read. `extra` is JSON text."""

    url: str
    handler: str | None
    depth: int
    extra: str | None


def task_groups(tasks: Iterable[NewTask]) -> list[list[object]]:
    """New tasks as `admit_tasks.lua` reads them: in their order, those alike that follow each other together."""
    groups: list[list[object]] = []
    alike: tuple[object, ...] = ()
    flat: list[object] = []
    for task in tasks:
        pooled_lane = task.lane if task.pool is None else task.pooled_lane
        traits = (pooled_lane, task.priority, task.wait, task.ttl)
        if traits != alike:
            alike = traits
            flat = []
            groups.append([pooled_lane, task.priority, task.wait, -1 if task.ttl is None else task.ttl, flat])
        key = task.key
        number, bucket = (False, _names(task)) if key is None else seen_row(key)
        extra = None if task.extra is NO_EXTRA else opaque(_json(task.extra))
        flat += (task.site, number, bucket, opaque(encode((task.url, task.handler, task.depth, extra))))
    return groups


def _names(task: NewTask) -> object:
    """What stands in place of a set where a page is let in again: its names, so that its old endings are forgotten."""
    page = page_of(task.url, task.extra)
    return False if page is None else opaque(b"".join(names_of(page)))


def seen_row(key: bytes) -> tuple[str, str]:
    """What a run remembers of a key, and the set that it is in."""
    number, bucket = _KEY.unpack_from(key)
    return str(number), BUCKETS[bucket % SEEN_BUCKETS]


def full_key(number: int, bucket: int) -> bytes:
    """A key that was seen, from its number and the set it is in: as `seen_key` makes it."""
    return _KEY.pack(number, bucket)


def key_row(key: bytes) -> tuple[str, str]:
    """A key that comes from another store, as `unpack_keys.lua` reads it."""
    number, bucket = _KEY.unpack(key)
    return BUCKETS[bucket], str(number)

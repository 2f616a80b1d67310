"""What comes from another store with a run that moves here, as the scripts of `lua/move/arrive` read it."""

from __future__ import annotations

import msgspec

from shoal.frontier.contract.mover import PackedEnding, PackedLetter, PackedSite, PackedSlot, PackedTask
from shoal.frontier.redis.codec.encoding import encode, opaque

ENDING_BUCKETS = [f"{number:03x}" for number in range(1 << 12)]
"""The names of the hashes that say how pages ended."""


def task_row(task: PackedTask) -> tuple[object, ...]:
    """A task that comes from another store, as `unpack_tasks.lua` reads it: 9 values."""
    when = (task.not_before or 0, task.expires_at or 0)
    return (task.number, task.lane, task.site, task.priority, *when, task.attempts, task.crashes, _body(task))


def dead_row(letter: PackedLetter) -> tuple[object, ...]:
    """A dead letter that comes from another store, as `unpack_letters.lua` reads it: 9 values."""
    why = (letter.died_at, letter.reason, letter.priority)
    return (letter.number, letter.lane, letter.site, letter.attempts, letter.crashes, *why, _body(letter))


def ending_row(ending: PackedEnding) -> tuple[object, ...]:
    """How a page ended, from another store, as `unpack_endings.lua` reads it: 5 values."""
    return (opaque(ending.name), ending.state, ending.ended_at, ending.reason or False, ending.url or False)


def site_row(site: PackedSite) -> tuple[object, ...]:
    """The clocks of a site that come from another store, as `unpack_sites.lua` reads them."""
    whole = [PackedSlot("", site.begun_at, 0, 0, 0)] if site.begun_at else []
    return (site.site, site.crawl_delay, [*site.slots, *whole])


def _body(task: PackedTask | PackedLetter) -> msgspec.Raw:
    return opaque(encode((task.url, task.handler, task.depth, task.extra)))

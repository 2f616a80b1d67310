"""Notes (append-only, in order) and cache entries (by key): what is kept beside the tasks, as values."""

from __future__ import annotations

import msgspec

from shoal.core.clock import Millis


class Note(msgspec.Struct, frozen=True):
    """Something to remember in order, such as the requests that were made for a run. The store never looks inside.

    `ttl`: how long it is kept; None = until its stream is forgotten.
    """

    stream: str
    body: bytes
    ttl: Millis | None = None


class Entry(msgspec.Struct, frozen=True):
    """Something to remember by its key for `ttl`, by the store's clock. Replaces what was there.

    `ttl`: 0 = let go: what is there is forgotten, if it has this value; anything else stays.
    `key`: if it begins with a site and a space, it lies beside that site: what a settlement of the site leaves there is
    there before the next task of the site can be claimed. What lies elsewhere may come a moment later.
    """

    key: str
    value: bytes
    ttl: Millis

"""The third protocol of an engine: bytes by key, for a while, shared by all workers.

An entry is there until its time is over by the store's clock, and not a moment longer; a sweep, or the store itself,
clears it away. What must not outlive the lease that brought it goes with a settlement (`Settlement.entries`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from shoal.core.notes import Entry


class Cache(Protocol):
    """Bytes by key, for a while."""

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """What is there under these keys; those under which there is nothing, or no longer, are absent."""
        ...

    async def put(self, entries: Sequence[Entry]) -> None:
        """Keep these; of two under one key, the last."""
        ...

    async def hold(self, entries: Sequence[Entry]) -> Set[str]:
        """Keep each of these, all under different keys, if there is nothing else under its key.

        Answers the keys of those that are there now. One that was there already, with this value, is kept for the whole
        of its time again; so one may ask twice. Of several who want the same key at once, one gets it.
        """
        ...

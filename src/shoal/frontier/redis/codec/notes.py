"""Notes and entries of the cache as the scripts read them."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.core.notes import Entry, Note
from shoal.frontier.redis.codec.encoding import opaque


def note_rows(notes: Iterable[Note]) -> list[tuple[object, ...]]:
    """Notes as `notes.lua` reads them."""
    return [(note.stream, opaque(note.body), -1 if note.ttl is None else note.ttl) for note in notes]


def entry_rows(entries: Iterable[Entry]) -> list[tuple[object, ...]]:
    """Entries of the cache as `cache_entries.lua` reads them."""
    return [(entry.key, opaque(entry.value), entry.ttl) for entry in entries]


def remembered(notes: Iterable[Note], entries: Iterable[Entry]) -> dict[str, object]:
    """What `remember.lua` is asked to keep."""
    return {"notes": note_rows(notes), "entries": entry_rows(entries)}


def home_of(key: str) -> str:
    """What decides on the partition of an entry: the site that it lies beside, or else its whole key."""
    return key.partition(" ")[0]

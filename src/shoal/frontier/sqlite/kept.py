"""Notes and entries: what is kept beside the tasks."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.frontier.sqlite.transaction import Transaction
from shoal.kept import Entry, Note


def keep_notes(tx: Transaction, notes: Sequence[Note]) -> None:
    """Append notes to their streams."""
    rows = [(note.stream, None if note.ttl is None else tx.now + note.ttl, note.body) for note in notes]
    tx.write_rows("keep_notes", rows)


def keep_entries(tx: Transaction, entries: Sequence[Entry]) -> None:
    """Put entries under their keys; of two under one key, the last."""
    tx.write_rows("write_cache", [(entry.key, entry.value, tx.now + entry.ttl) for entry in entries])

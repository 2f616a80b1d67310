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
    """Put entries under their keys; of two under one key, the last. Those without time let go."""
    tx.write_rows("write_cache", [(entry.key, entry.value, tx.now + entry.ttl) for entry in entries if entry.ttl])
    for entry in entries:
        if not entry.ttl:
            tx.run("let_go", key=entry.key, value=entry.value)


def hold_entries(tx: Transaction, entries: Sequence[Entry]) -> frozenset[str]:
    """Put each entry where nothing else is. Answers the keys where that was so."""
    return frozenset(
        entry.key
        for entry in entries
        if tx.value("hold_cache", key=entry.key, value=entry.value, until=tx.now + entry.ttl, now=tx.now)
    )

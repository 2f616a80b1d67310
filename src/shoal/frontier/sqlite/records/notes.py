"""Notes: streams of small records that are kept beside the tasks."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.core.notes import Note
from shoal.frontier.sqlite.store.transaction import Transaction


def keep_notes(tx: Transaction, notes: Sequence[Note]) -> None:
    """Append notes to their streams."""
    rows = [(note.stream, None if note.ttl is None else tx.now + note.ttl, note.body) for note in notes]
    tx.write_rows("keep_notes", rows)


def forget_notes(tx: Transaction, stream: str, most: int) -> int:
    """Delete so many notes of a stream. Answers how many there were."""
    return tx.run("forget_notes", stream=stream, most=most)

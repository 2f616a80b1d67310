"""The cache: values under keys, each for its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from shoal.core.notes import Entry
from shoal.core.storable import is_storable
from shoal.frontier.sqlite.reader import SqliteReader
from shoal.frontier.sqlite.store.transaction import Transaction, encode
from shoal.frontier.sqlite.store.writer import Writer


class SqliteCache:
    """The `Cache` of this engine."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def get(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        asked = encode(list(filter(is_storable, keys))).decode()
        return dict(await self._reader.rows("read_cache", keys=asked, now=await self._reader.now()))

    async def put(self, entries: Sequence[Entry]) -> None:
        await self._writer.call(lambda tx: keep_entries(tx, entries))

    async def hold(self, entries: Sequence[Entry]) -> Set[str]:
        return await self._writer.call(lambda tx: hold_entries(tx, entries))


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

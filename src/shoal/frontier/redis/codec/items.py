"""Stored batches of items. Scripts only read how many there are in each."""

from __future__ import annotations

import struct

import msgspec

from shoal.frontier.contract.mover import PackedItems
from shoal.frontier.contract.reader import Item
from shoal.frontier.redis.codec.encoding import encode

_ITEMS = struct.Struct(">BI")
"""A stored batch of items begins with their number, as msgpack; what follows is for the client alone."""

_decode_batch = msgspec.msgpack.Decoder(tuple[str, str | None, bytes]).decode
_raw_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def stored_items(record: bytes) -> list[Item]:
    """The items of one stored batch."""
    url, group, body = _decode_batch(record[_ITEMS.size :])
    return [Item(url, group, raw) for raw in _raw_items(body)]


def packed_items(batch: PackedItems) -> bytes:
    """A batch of items that comes from another store."""
    return _ITEMS.pack(0xCE, batch.items) + encode((batch.url, batch.group, batch.body))


def unpacked_items(record: bytes) -> PackedItems:
    """One stored batch of items, on its way to another store."""
    return PackedItems(_ITEMS.unpack_from(record)[1], *_decode_batch(record[_ITEMS.size :]))

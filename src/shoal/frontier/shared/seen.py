"""What every engine keeps of the key that a task is deduplicated by, so that a run can move from one to another."""

from __future__ import annotations

SEEN_BYTES = 10
"""How long that is; 78 bits of it count. Among n tasks of one run, the chance that any two differ and are taken for one
is n² / 2**79: for ten million, one in six billion. In return, a key that was seen costs a third of the room."""

_LOW_BITS = [bytes((value & 0x3F,)) for value in range(256)]


def seen_key(key: bytes) -> bytes:
    """The part of a key that is compared: 8 bytes, and the lower 14 bits of the next two. Its own part is itself."""
    return key[:8] + _LOW_BITS[key[8]] + key[9:10]

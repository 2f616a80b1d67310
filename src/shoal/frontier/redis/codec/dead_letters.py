"""Dead letters as the scripts keep them."""

from __future__ import annotations

import msgspec

from shoal.core.clock import Moment
from shoal.frontier.redis.codec.tasks import Body


class Letter(msgspec.Struct, array_like=True, frozen=True):
    """A dead letter as a script keeps it. `reason` is JSON text."""

    id: int
    site: str
    line: int
    attempts: int
    crashes: int
    died_at: Moment
    reason: str
    priority: int
    body: Body


_letter = msgspec.msgpack.Decoder(Letter).decode


def decode_letter(packed: bytes) -> Letter:
    """A dead letter, from the values that a script packed one behind the other."""
    return _letter(b"\x99" + packed)

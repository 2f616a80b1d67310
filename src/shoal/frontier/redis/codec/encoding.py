"""Values as the scripts read them: msgpack in both directions.

The scripts look at what moves a task. Its URL and the rest that only a worker reads pass through them as they are.
"""

from __future__ import annotations

import os

import msgspec

encode = msgspec.msgpack.Encoder().encode

_HEADS = [bytes((0xA0 | length,)) if length < 32 else bytes((0xD9, length)) for length in range(1 << 8)]
"""What stands before a short string of each length, in msgpack."""

_TOKEN_BYTES = 7
_FIVE_BITS = bytes(value & 0x1F for value in range(256))
"""The first of those bytes has so many bits: a token is a whole number that Lua knows exactly."""


def opaque(data: bytes) -> msgspec.Raw:
    """Bytes as a msgpack string, which is what Redis' Lua reads them as (it does not know msgpack's binary type)."""
    length = len(data)
    if length < 1 << 8:
        return msgspec.Raw(_HEADS[length] + data)
    if length < 1 << 16:
        return msgspec.Raw(b"\xda" + length.to_bytes(2, "big") + data)
    return msgspec.Raw(b"\xdb" + length.to_bytes(4, "big") + data)


def packed_token(token: int) -> bytes:
    """A token as the scripts know it: its msgpack form, which they only compare and pass on."""
    return b"\xcf" + token.to_bytes(8, "big")


def random_tokens(number: int) -> bytes:
    """New tokens of 53 bits, each as `packed_token` has it, one behind the other."""
    chance = os.urandom(_TOKEN_BYTES * number)
    tokens = bytearray(9 * number)
    tokens[0::9] = b"\xcf" * number
    tokens[2::9] = chance[:number].translate(_FIVE_BITS)
    for place in range(1, _TOKEN_BYTES):
        tokens[place + 2 :: 9] = chance[place * number : (place + 1) * number]
    return bytes(tokens)

"""No body takes long to unpack or to read as text, nor more memory than its cap, whatever it says of itself."""

from __future__ import annotations

import asyncio
import gzip
import random
import zlib
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import brotli  # type: ignore[import-untyped]
import pytest
from multidict import CIMultiDict

from shoal.core.charsets.decoding import decode
from shoal.core.charsets.labels import CODECS
from shoal.fetch.body import read_body
from shoal.fetch.protocol import FetchError
from support.cost import KIB, MIB, check_time, numbered, peak, pumped, size_of

MARKUP = [
    *(
        b"<meta ",
        b"<meta",
        b"charset",
        b"charset=",
        b"charset =",
        b"=",
        b" ",
        b"\n",
        b"'",
        b'"',
        b";",
        b">",
        b"/",
        b"<!--",
        b"-->",
    ),
    *(
        b"<?xml ",
        b"encoding",
        b"encoding=",
        b"utf-8",
        b"bogus",
        b"a",
        b"<",
        b"http-equiv=",
        b"content='text/html; charset=",
        b"-",
    ),
    *(
        b"\xff",
        b"\xc3\xa9",
        b"\x80",
        b"\x81",
        b"\x8d",
        b"\0",
        b"\xd8\x00",
        b"\x1b$B",
        b"\x1b(",
        b"~{",
        b"\xfe\xff",
        b"\xed\xa0\x80",
    ),
]
TYPES = [b"text/html", b"charset", b"charset=", b"=", b" ", b";", b'"', b"'", b"a", b"utf-8", b"\t", b","]
PACKED = [
    *MARKUP,
    b"\x1f\x8b\x08",
    gzip.compress(b"", mtime=0),
    gzip.compress(b"a" * 999, mtime=0),
    zlib.compress(b""),
    b"\x00\x00\xff\xff",
]
ENCODINGS = (
    "gzip",
    "deflate",
    "br",
    "gzip, gzip",
    "gzip, deflate, br",
    "br, br, br",
    "identity, gzip",
    "",
    "x-gzip,",
    "gzip, br",
)
CAP = 4 * MIB
HEADER = 8 * KIB
"""As long as a header can be that we read."""
SECONDS_PER_MIB = 2.0
"""Of CPU, for bytes that came and bytes that were unpacked; honest ones take a hundredth."""


class Pieces:
    """What has come of a body, in pieces."""

    def __init__(self, body: bytes) -> None:
        self._body, self._at = body, 0

    async def readany(self) -> bytes:
        self._at += 64 * KIB
        return self._body[self._at - 64 * KIB : self._at]


def unpack(body: bytes, encoding: str) -> None:
    message = SimpleNamespace(headers=CIMultiDict({"Content-Encoding": encoding, "Transfer-Encoding": "chunked"}))

    async def unpacked() -> None:
        with suppress(FetchError, zlib.error, brotli.error):
            await read_body(cast("Any", message), cast("Any", Pieces(body)), CAP)

    asyncio.run(unpacked())


def pack(body: bytes, encoding: str) -> bytes:
    for name in encoding.split(","):
        match name.strip():
            case "gzip" | "x-gzip":
                body = gzip.compress(body, 1, mtime=0)
            case "deflate":
                body = zlib.compress(body, 1)
            case "br":
                body = brotli.compress(body, quality=1)
    return body


def search_packed(seconds: float | None, most: int, largest: int) -> None:
    slowest = 0.0
    held = number = 0
    for number, chance in numbered("packed", 0, seconds, most):
        size = size_of(number, largest)
        file, encoding, seed = pumped(chance, PACKED), chance.choice(ENCODINGS), chance.random()
        half, whole = (packed(random.Random(seed), file.of_size(length), encoding) for length in (size // 2, size))
        what, allowed = f"body {number} ({encoding})", 0.1 + SECONDS_PER_MIB * (len(whole) + 2 * CAP) / MIB
        do = partial(unpack, encoding=encoding)
        slowest = max(slowest, check_time(what, do, half, whole, allowed))
        if not number % 10:
            held = max(held, peak(do, whole))
            assert held < 2 * CAP + 4 * MIB, f"{what}: {held >> 20} MiB"
    print(f"packed bodies: {number + 1} inputs; {slowest * 1000:.0f} ms and {held >> 20} MiB at most")


def packed(chance: random.Random, body: bytes, encoding: str) -> bytes:
    """As it says, or not; some of them large when they are unpacked, and some damaged."""
    if chance.random() < 0.7:
        body = pack(body * chance.choice((1, 1, 30)), encoding)
    if body and chance.random() < 0.3:
        at = chance.randrange(len(body))
        body = body[:at] + chance.randbytes(3) + body[at + 3 :]
    return body


def search_texts(seconds: float | None, most: int, largest: int) -> None:
    slowest = 0.0
    held = number = 0
    labels = sorted(CODECS)
    for number, chance in numbered("text", 0, seconds, most):
        size = size_of(number, largest)
        file, label = pumped(chance, MARKUP), chance.choice(labels)
        long = pumped(chance, TYPES).of_size(HEADER).decode()
        named = f"text/html; charset={label}"
        headers = {"Content-Type": chance.choice((named, named, long, f"charset={long}", ""))}
        meta, declaration = f"<meta charset={label}>".encode(), f"<?xml version='1.0' encoding='{label}'?>".encode()
        head = chance.choice((b"", meta, declaration))
        half, whole = (head + file.of_size(length) for length in (size // 2, size))
        what, do = f"text {number} ({headers['Content-Type'][:40]})", partial(decode, headers=headers)
        slowest = max(slowest, check_time(what, do, half, whole, 0.05 + SECONDS_PER_MIB * size / MIB))
        if not number % 10:
            held = max(held, peak(do, whole))
            assert held < 16 * size + MIB, f"{what}: {held >> 20} MiB"
    print(f"texts: {number + 1} inputs; {slowest * 1000:.0f} ms and {held >> 20} MiB at most")


def test_no_packed_body_costs_much() -> None:
    search_packed(None, 60, 128 * KIB)


def test_no_text_costs_much() -> None:
    search_texts(None, 200, 64 * KIB)


@pytest.mark.proof
def test_no_packed_body_of_many_costs_much() -> None:
    search_packed(200, 0, MIB)


@pytest.mark.proof
def test_no_text_of_many_costs_much() -> None:
    search_texts(200, 0, MIB)

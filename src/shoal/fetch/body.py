"""The body of an answer: read under a cap, its content encoding taken off piece by piece, so that no bomb goes off."""

from __future__ import annotations

import asyncio
import math
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import IO

import aiohttp
import brotli  # type: ignore[import-untyped]
from aiohttp import hdrs
from aiohttp.http_parser import RawResponseMessage

from shoal.core.outcome import Blame
from shoal.fetch.protocol import FetchError

_AT_ONCE = 2**20  # a body that is announced to be no larger is read without looking at its pieces
MOST_LAYERS = 3
"""Content encodings that are taken off one body, one after the other."""
_STEP = 2**17  # as much as is decompressed before the cap is looked at and others get a turn


async def read_body(
    message: RawResponseMessage,
    payload: aiohttp.StreamReader,
    cap: int,
    spool: IO[bytes] | None = None,
    *,
    cut: bool = False,
) -> tuple[bytes, int]:
    """The decoded body, and how many bytes came over the wire. Holds at most the cap and a few steps in memory.

    With `cut` (and no spool) a body that is larger than the cap is not refused: its beginning is the answer.
    With a `spool`, that is where the body goes, in place of what was there, and only a few steps are held.
    """
    held = BytesIO()  # unlike a list of pieces it gives out its bytes without a second copy
    decoded = held if spool is None else _emptied(spool)
    if payload is aiohttp.EMPTY_PAYLOAD:
        return b"", 0
    headers = message.headers
    refused = math.inf if cut else cap
    length = headers.get(hdrs.CONTENT_LENGTH)
    encoding = ", ".join(headers.getall(hdrs.CONTENT_ENCODING, ()))
    if length is not None and hdrs.TRANSFER_ENCODING not in headers:
        if int(length) > refused:
            raise _too_large(cap)
        if not encoding and int(length) <= _AT_ONCE and spool is None:
            body = await payload.read()
            return body, len(body)
    decoder = _decoder(encoding)
    received = 0
    while block := await payload.readany():
        received += len(block)
        if received > refused:
            raise _too_large(cap)
        for piece in decoder.feed(block) if decoder else (block,):
            decoded.write(piece)
            if decoded.tell() > cap:
                if cut:
                    return held.getvalue()[:cap], received
                raise _too_large(cap)
            if len(piece) >= _STEP:
                await asyncio.sleep(0)
    if received and decoder and not decoder.complete:
        raise FetchError(f"{encoding} body cut short", Blame.URL)
    return held.getvalue(), received


def _emptied(spool: IO[bytes]) -> IO[bytes]:
    spool.seek(0)
    spool.truncate()
    return spool


def _too_large(cap: int) -> FetchError:
    size = f"{cap / 2**20:g} MB" if cap >= 2**20 else f"{cap} bytes"
    return FetchError(f"body larger than {size}", Blame.URL, permanent=True)


class _Inflate:
    """gzip (several members too), and deflate as the standard says (zlib) and as some servers do it (raw)."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._members = 0
        self._begun = b""
        self._stream: zlib._Decompress | None = None

    @property
    def complete(self) -> bool:
        return self._stream is not None and self._stream.eof

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The decoded bytes in pieces of at most a step. What follows the end of the stream is not looked at."""
        while data:
            if self._stream is None:
                data = self._begun + data
                if len(data) < 2:
                    self._begun = data
                    return
                self._stream = zlib.decompressobj(self._window(data))
            elif self._stream.eof:
                if not self._gzip or not b"\x1f\x8b".startswith(data[:2]):
                    return
                self._members += 1
                if self._members > 1000:  # each costs a copy of what is left
                    raise FetchError("gzip body in more than 1000 parts", Blame.URL, permanent=True)
                self._stream = zlib.decompressobj(31)
            yield self._stream.decompress(data, _STEP)
            data = self._stream.unconsumed_tail or self._stream.unused_data

    def _window(self, data: bytes) -> int:
        if self._gzip:
            return 31
        return 15 if data[0] & 15 == 8 and int.from_bytes(data[:2]) % 31 == 0 else -15


class _Brotli:
    """br. Its pieces are up to twice a step long."""

    def __init__(self) -> None:
        self._stream = brotli.Decompressor()

    @property
    def complete(self) -> bool:
        return bool(self._stream.is_finished())

    def feed(self, data: bytes) -> Iterator[bytes]:
        while not self._stream.is_finished():
            piece = self._stream.process(data, output_buffer_limit=_STEP)
            yield piece
            data = b""
            if not piece and self._stream.can_accept_more_data():
                return


class _Layers:
    """Several encodings, one inside the other. `outermost`: the one that was put on last, and comes off first."""

    def __init__(self, outermost: _Decoder, inner: _Decoder) -> None:
        self._outermost = outermost
        self._inner = inner

    @property
    def complete(self) -> bool:
        return self._outermost.complete and self._inner.complete

    def feed(self, data: bytes) -> Iterator[bytes]:
        for piece in self._outermost.feed(data):
            yield from self._inner.feed(piece)


_Decoder = _Inflate | _Brotli | _Layers


def _decoder(encodings: str) -> _Decoder | None:
    """What takes the encodings off that a Content-Encoding names, in the order in which they were put on. None = there
    are none."""
    names = [name for name in (part.strip().lower() for part in encodings.split(",")) if name not in ("", "identity")]
    if len(names) > MOST_LAYERS:
        raise FetchError(f"body in more than {MOST_LAYERS} content encodings", Blame.URL, permanent=True)
    decoder: _Decoder | None = None
    for name in names:
        this = _one_decoder(name)
        decoder = this if decoder is None else _Layers(this, decoder)
    return decoder


def _one_decoder(name: str) -> _Decoder:
    match name:
        case "gzip" | "x-gzip":
            return _Inflate(gzip=True)
        case "deflate":
            return _Inflate(gzip=False)
        case "br":
            return _Brotli()
        case unknown:
            raise FetchError(f"unknown content encoding {unknown[:40]!r}", Blame.URL, permanent=True)

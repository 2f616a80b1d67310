"""The answers of a run as a web archive (WARC 1.1), each record a gzip member of its own.

An answer is in the file before its page is handed on: whatever was settled is in the archive, also if the process is
killed the moment after; what it was writing at that moment may be cut off at the end of the file. A page that is
fetched again after such a death is there twice. Bodies are as they were read, without their content encoding, whose
header is kept as `X-Archive-Orig-…`.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import uuid
from base64 import b32encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import BinaryIO

from shoal.core.clock import Moment, iso
from shoal.core.url import without_credentials
from shoal.core.version import __version__
from shoal.errors import EngineError
from shoal.fetch.observing.observed_fetcher import ObservedRequest

_TAKEN_OFF = frozenset({"content-encoding", "transfer-encoding", "content-length"})
MOST_FILES = 100_000

Fields = Sequence[tuple[str, str]]


class WarcArchive:
    """An observer that writes responses to an open file, which has a name."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._one_at_a_time = asyncio.Lock()
        self._begun = False

    async def observe(self, made: ObservedRequest) -> None:
        if made.response is None:
            return
        async with self._one_at_a_time:
            try:
                await asyncio.to_thread(self._write, made)
            except OSError as error:  # no page is settled whose answer is not in the archive
                what = f"The archive {self._stream.name!r} cannot be written: {error.strerror}."
                raise EngineError(what) from error

    def _write(self, made: ObservedRequest) -> None:
        if not self._begun:
            self._stream.write(_information(Path(self._stream.name).name, made.at))
            self._begun = True
        self._stream.write(_response(made))
        self._stream.flush()


@contextmanager
def opened_archive(path: Path) -> Iterator[WarcArchive]:
    """A new archive. Where the name is taken, by an earlier run or another process, a number is added to it."""
    with _created(path) as stream:
        yield WarcArchive(stream)


def _created(path: Path) -> BinaryIO:
    stem, _, suffixes = path.name.partition(".")
    for number in count(1):
        try:
            return path.with_name(f"{stem}{f'-{number}' if number > 1 else ''}.{suffixes}").open("xb")
        except FileExistsError:
            if number >= MOST_FILES:
                raise
    raise AssertionError("count never ends")


def _information(name: str, at: Moment) -> bytes:
    block = f"software: Shoal/{__version__}\r\nformat: WARC File Format 1.1\r\n".encode()
    return _record("warcinfo", at, [("WARC-Filename", name), ("Content-Type", "application/warc-fields")], block)


def _response(made: ObservedRequest) -> bytes:
    response, spool = made.response, made.fetch.spool
    assert response is not None  # noqa: S101 - others are not written
    body = response.body
    if spool is not None:
        spool.seek(0)
        body = spool.read()
    kept = [
        (f"X-Archive-Orig-{name}" if name.lower() in _TAKEN_OFF else name, value)
        for name, value in response.headers.items()
    ]
    lines = [f"HTTP/1.1 {_status(response.status)}", *(f"{name}: {value}" for name, value in kept)]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode("utf-8", "surrogateescape")
    fields = [
        ("WARC-Target-URI", without_credentials(response.url)),
        ("WARC-Payload-Digest", _digest(body)),
        ("Content-Type", "application/http; msgtype=response"),
    ]
    return _record("response", made.at, fields, head + body)


def _record(kind: str, at: Moment, fields: Fields, block: bytes) -> bytes:
    named = [
        ("WARC-Type", kind),
        ("WARC-Record-ID", f"<urn:uuid:{uuid.uuid4()}>"),
        ("WARC-Date", iso(at)),
        *fields,
        ("WARC-Block-Digest", _digest(block)),
        ("Content-Length", str(len(block))),
    ]
    head = "\r\n".join(["WARC/1.1", *(f"{name}: {value}" for name, value in named), "", ""])
    return gzip.compress(head.encode() + block + b"\r\n\r\n", mtime=0)


def _digest(content: bytes) -> str:
    """As archives write it; it is there to find copies, not to keep secrets."""
    return f"sha1:{b32encode(hashlib.sha1(content, usedforsecurity=False).digest()).decode()}"


def _status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} "

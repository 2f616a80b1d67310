"""What a worker and its handler processes say to each other: one page at a time, as msgpack with its length before it.

The process is not trusted: what it says is decoded into these types, or it is not heard at all. Nothing is unpickled.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from shoal.api.request import Request
from shoal.core.task import Kind
from shoal.work.task.handler_failure import HandlerFailure

MOST_BYTES = 64 * 1024 * 1024
"""What one page may give: items and requests together."""

LENGTH = struct.Struct("<Q")


class Hello(msgspec.Struct, frozen=True):
    """The first that a process is told. `targets`: where its scrapers are. `labels`: of each, its handlers; a process
    that finds others has other code. `memory`: bytes that pages may take. `timeout`: seconds for one page."""

    targets: tuple[str, ...]
    labels: dict[str, list[str | None]]
    search_path: tuple[str, ...]
    memory: int
    timeout: float


class Ready(msgspec.Struct, frozen=True):
    """It has loaded its scrapers. `problem`: it has not, and why."""

    problem: str | None = None


class SentRequest(msgspec.Struct, frozen=True, array_like=True):
    """A Request on its way from one process to another, field by field."""

    url: str
    to: str | None
    data: Any
    group: str | None
    priority: int | None
    lane: str | None
    ttl: float | str | None
    method: str
    headers: dict[str, str] | None
    body: bytes | None
    dedup: bool
    kind: Kind
    every: float | str | None

    @classmethod
    def of(cls, request: Request) -> SentRequest:
        """As it is sent. Raises AttributeError or TypeError for one that cannot be."""
        url, to, data, group, priority, lane, ttl, method, headers, body, *rest = msgspec.structs.astuple(request)
        named = None if headers is None else dict(headers)
        text = body.encode() if isinstance(body, str) else body
        return cls(url, to, data, group, priority, lane, ttl, method, named, text, *rest)

    def received(self) -> Request:
        """As it was."""
        return Request(*msgspec.structs.astuple(self))


class PageWork(msgspec.Struct, frozen=True):
    """A page, and who is to read it. `label`: None = the default handler. `volatile`: what the hash of the page leaves
    out; None = none is wanted. `last`: the hash at the last visit. `unchanged`: where none is wanted, but known."""

    scraper: str
    label: str | None
    url: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    request: SentRequest
    depth: int
    volatile: tuple[str, ...] | None = None
    last: str | None = None
    unchanged: bool = False


class PageRead(msgspec.Struct, frozen=True):
    """What came of it. `items`: JSON objects. `refused`: links that cannot be fetched. `digest`: the hash of the page.
    `failure`: the handler has failed, and nothing else counts."""

    items: list[bytes] = []
    requests: list[SentRequest] = []
    refused: int = 0
    digest: str | None = None
    failure: HandlerFailure | None = None


def _foreign(value: object) -> object:
    """What looks like a text is one: addresses are of a class of their own."""
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"a {type(value).__name__} cannot be put into JSON")


encoder = msgspec.msgpack.Encoder(enc_hook=_foreign)


def framed(message: Any) -> bytes:
    """A message as it is sent."""
    content = encoder.encode(message)
    return LENGTH.pack(len(content)) + content

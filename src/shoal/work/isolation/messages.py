"""What a worker and its handler processes say to each other: one page at a time, as msgpack with its length before it.

The process is not trusted: what it says is decoded into these types, or it is not heard at all. Nothing is unpickled.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from shoal.api.request import Request
from shoal.api.request_body import written
from shoal.core.task import Kind
from shoal.core.url import without_credentials
from shoal.errors import BadScraper
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


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A Request on its way from one process to another: what it says in short is written out."""

    url: str
    to: str | None = None
    data: Any = None
    group: str | None = None
    priority: int | None = None
    lane: str | None = None
    ttl: float | str | None = None
    method: str = "GET"
    headers: dict[str, str] | None = None
    body: bytes | None = None
    dedup: bool = True
    kind: Kind = Kind.PAGE
    every: float | str | None = None
    timeout: float | str | None = None
    accept: list[int] | None = None
    redirects: bool | None = None

    @classmethod
    def of(cls, request: Request) -> SentRequest:
        """As it is sent. Raises AttributeError or TypeError for one that cannot be, BadScraper where it says why."""
        try:
            method, headers, body = written(request)
        except ValueError as error:
            raise BadScraper(f"A request for {without_credentials(request.url)} cannot be made: {error}.") from error
        said = {name: getattr(request, name) for name in _AS_IT_IS}
        accept = None if request.accept is None else list(request.accept)
        return cls(**said, method=method, headers=headers, body=body, accept=accept)

    def received(self) -> Request:
        """As it was, but that `json`, `form` and `cookies` are body and headers."""
        return Request(**msgspec.structs.asdict(self))


_AS_IT_IS = tuple(
    field for field in SentRequest.__struct_fields__ if field not in ("method", "headers", "body", "accept")
)


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
    history: list[tuple[str, int, list[tuple[str, str]]]] = []
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

"""HTTP caching: which answers may be kept, how they are written, and how they are revalidated (ETag, Last-Modified)."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping
from hashlib import sha256

import msgspec
from multidict import CIMultiDict, CIMultiDictProxy

from shoal.core.clock import Moment
from shoal.fetch.protocol import Response

LARGEST = 4 * 1024 * 1024
"""Bytes of the largest body that is kept, unless said otherwise."""

_NO_STORE = re.compile(r"(?:^|[\s,;])no-store(?:$|[\s,;=])", re.IGNORECASE)
_NOT_KEPT = frozenset(
    {"set-cookie", "set-cookie2", "connection", "keep-alive", "transfer-encoding", "content-encoding"}
)
"""Headers that were meant for that one answer, or that are no longer true of its body."""

_FAST = 1


class StoredAnswer(msgspec.Struct, frozen=True, array_like=True):
    """One answer. `at`: when it was had or last confirmed, by the store's clock. `requests`: what it took, redirects
    included. `rules`, `digest`: the hash of what it says, and how that was made."""

    at: Moment
    url: str
    status: int
    headers: list[tuple[str, bytes]]
    packed: bytes
    received: int
    requests: int
    rules: str
    digest: str

    @property
    def validators(self) -> dict[str, str]:
        """What to ask with whether it is still true; empty = it gave nothing for that."""
        said = {name.lower(): _text(value) for name, value in self.headers}
        asked = {"If-None-Match": said.get("etag"), "If-Modified-Since": said.get("last-modified")}
        return {name: value for name, value in asked.items() if value}

    def response(self, confirmed: Mapping[str, str] | None = None, received: int = 0) -> Response:
        """The answer as it was; `confirmed`: the headers of a 304, which are newer. Raises ValueError if damaged."""
        headers = CIMultiDict([(name, _text(value)) for name, value in self.headers])
        for name, value in (confirmed or {}).items():
            if name.lower() not in _NOT_KEPT and name.lower() != "content-length":
                headers[name] = value
        try:
            body = zlib.decompress(self.packed)
        except zlib.error as error:
            raise ValueError(str(error)) from error
        return Response(self.url, self.status, CIMultiDictProxy(headers), body, received)


_decoder = msgspec.msgpack.Decoder(StoredAnswer)
encoded = msgspec.msgpack.Encoder().encode


def _text(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _raw(value: str) -> bytes:
    """A header as it came over the wire, whatever it is made of."""
    return value.encode("utf-8", "surrogateescape")


def decoded(value: bytes | None) -> StoredAnswer | None:
    """What was stored; None = nothing, or nothing that this version can read."""
    if value is None:
        return None
    try:
        return _decoder.decode(value)
    except msgspec.MsgspecError:
        return None


def may_be_kept(response: Response, largest: int) -> bool:
    """Whether an answer may be used again: a whole page, of bearable size, whose server does not forbid it."""
    headers = response.headers
    return (
        response.status == 200
        and len(response.body) <= largest
        and not any(_NO_STORE.search(said) for said in headers.getall("Cache-Control", ()))
        and not any("*" in said for said in headers.getall("Vary", ()))
    )


def keep(response: Response, at: Moment, requests: int, rules: str, digest: str) -> StoredAnswer:
    """An answer, ready to be stored."""
    headers = [(str(n), _raw(value)) for n, value in response.headers.items() if n.lower() not in _NOT_KEPT]
    packed = zlib.compress(response.body, _FAST)
    return StoredAnswer(at, response.url, response.status, headers, packed, response.received, requests, rules, digest)


def identity(scraper: str, method: str, url: str, body: bytes | None, headers: Iterable[tuple[str, str]]) -> str:
    """What two requests must have in common to get one answer: all of it, cookies and credentials included.

    Scrapers never share. It is a hash, so that no secret is in it.
    """
    said = sorted((name.lower(), value) for name, value in headers)
    return sha256(msgspec.json.encode((scraper, method, url, body, said))).hexdigest()

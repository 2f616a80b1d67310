"""What goes back to a client: an answer, or a problem in the form of RFC 9457."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

JSON = b"application/json"
PROBLEM = b"application/problem+json"

SECURITY = ((b"x-content-type-options", b"nosniff"), (b"content-security-policy", b"frame-ancestors 'none'"))
"""On every answer, problems included: a browser takes nothing for a script that is none, and frames nothing of ours."""

encode = msgspec.json.Encoder().encode


class Answer(NamedTuple):
    """A whole response. `headers`: besides type and length of the body."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    kind: bytes = JSON


class Problem(Exception):
    """Something that a client is told instead of what it asked for. Raised anywhere below a route.

    `kind`: a word for programs. `detail`: a sentence for people. `more`: further members of the document.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        headers: tuple[tuple[bytes, bytes], ...] = (),
        **more: Any,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = headers
        self.more = more

    def document(self) -> Mapping[str, Any]:
        """The problem as RFC 9457 has it."""
        return {
            "type": f"tag:shoal,2026:{self.kind}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }

    def answer(self) -> Answer:
        """The problem as it is sent."""
        return Answer(self.status, encode(self.document()), self.headers, PROBLEM)


def retry_after(seconds: float) -> tuple[bytes, bytes]:
    """The header that says when it is worth coming back."""
    return b"retry-after", b"%d" % max(1, round(seconds))


def unavailable(kind: str, detail: str, seconds: float = 1.0) -> Problem:
    """The client did nothing wrong, and may come back in a moment."""
    return Problem(503, kind, detail, headers=(retry_after(seconds),))

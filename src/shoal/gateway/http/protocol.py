"""HTTP connections with limits: how much a client may say, and how long it may take, before its wish is clear."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from shoal.core.clock import Clock
from shoal.gateway.http.answer import Problem

LARGEST_HEAD = 64 * 1024
"""Bytes of a request line and headers, about; more are not read. nginx takes half of that."""

HEAD_WITHIN = 30.0
"""Seconds within which they must be there, from the connection or their first byte on."""


class Connection(HttpToolsProtocol):
    """uvicorn's, which by itself waits for ever, takes any number of headers, and complains in plain text."""

    def __init__(self, *given: Any, clock: Clock, **named: Any) -> None:
        super().__init__(*given, **named)
        self._clock = clock
        self._asking_since: float | None = None
        self._head = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._asking_since = self._clock.elapsed()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._asking_since, self._head = self._clock.elapsed(), 0

    def on_headers_complete(self) -> None:
        self._asking_since = None
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """What comes together with the end of the request before does not count."""
        if self._asking_since is not None:
            self._head += len(data)
        super().data_received(data)
        if self._asking_since is not None and self._head > LARGEST_HEAD:
            self._refuse(Problem(431, "headers-too-large", f"Headers may have at most {LARGEST_HEAD:,} bytes."))

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(400, "bad-http", msg))

    def hang_up_if_slow(self) -> None:
        """End a connection whose client has not said in time what it wants."""
        if self._asking_since is None:
            return
        if self._clock.elapsed() - self._asking_since > HEAD_WITHIN * 1000:
            self._refuse(Problem(408, "too-slow", f"A request must be there within {HEAD_WITHIN:.0f} seconds."))

    def _refuse(self, problem: Problem) -> None:
        """Say why, if it is the turn of this request, and hang up."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_written(problem))
        self.transport.close()


def _written(problem: Problem) -> bytes:
    answer: Any = problem.answer()
    title = problem.document()["title"].encode()
    head = b"HTTP/1.1 %d %b\r\ncontent-type: %b\r\n" % (answer.status, title, answer.kind)
    return head + b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(answer.body), answer.body)

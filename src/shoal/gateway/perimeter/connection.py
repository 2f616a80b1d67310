"""HTTP connections with limits, which hold before it is known who speaks: how much a client may say, how long it may
take, how many requests it may send ahead, and how long it may leave its answers unread."""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from shoal.core.clock import Clock
from shoal.core.secret import SecretBytes
from shoal.gateway.http.answer import SECURITY, Problem
from shoal.gateway.perimeter.caller import CALLER, Caller, caller_of
from shoal.gateway.perimeter.unread_answers import TakingWatch, UnreadAnswers

LARGEST_HEAD = 64 * 1024
"""Bytes of a request line and headers, about; more are not read. nginx takes half of that."""

HEAD_WITHIN = 30.0
"""Seconds within which they must be there, from the connection or their first byte on."""

MOST_PIPELINED = 8
LARGEST_PIPELINED = 64 * 1024
"""Requests, and bytes of their bodies, that may wait behind the one that is being answered."""

FRAMING = 16
"""Bytes of chunk sizes, chunk extensions and trailers for each byte of a body that comes in chunks."""

SECRETS = frozenset({b"authorization", b"proxy-authorization", b"cookie", b"x-api-key"})
NOTED = SECRETS | {b"host", b"expect"}


class Connection(HttpToolsProtocol):
    """uvicorn's, which by itself waits for ever, takes any number of headers and requests, and takes trailers for
    headers. Whoever goes too far is not listened to any more: what was asked in full before is answered, and then the
    connection ends."""

    def __init__(self, *given: Any, clock: Clock, unread: UnreadAnswers, **named: Any) -> None:
        super().__init__(*given, **named)
        self._clock = clock
        self._unread = unread
        self._taking = TakingWatch()
        self._asking_since: float | None = None
        self._in_head = False
        self._head = 0
        self._framing = 0
        self._hosts = 0
        self._waiting_bytes = 0
        self._deaf = False
        self._problem: Problem | None = None
        self._caller = Caller()
        self._serving: RequestResponseCycle | None = None

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._asking_since = self._clock.elapsed()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has gone, and whoever works for it hears of that."""
        self.pipeline.clear()
        self._unread.taken(self.transport)
        serving = self._serving
        super().connection_lost(exc)
        if serving is not None and not serving.response_complete:
            self._disconnect(serving)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread.stalled(self.transport)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._taking.caught_up()
        self._unread.taken(self.transport)

    def hang_up_if_slow(self) -> None:
        """End a connection whose client has not said in time what it wants, or does not take what it asked for."""
        now = self._clock.elapsed()
        if self._taking.is_over(self.transport.get_write_buffer_size(), now):
            self.transport.abort()
        elif self._asking_since is not None and now - self._asking_since > HEAD_WITHIN * 1000:
            self._refuse(Problem(408, "too-slow", f"A request must be there within {HEAD_WITHIN:.0f} seconds."))

    # What comes in

    def data_received(self, data: bytes) -> None:
        """What comes together with the end of the request before does not count."""
        self._unset_keepalive_if_required()
        if self._deaf:
            return
        if self._asking_since is not None:
            self._head += len(data)
        else:
            self._framing += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:  # we speak HTTP/1.1 and nothing else: it is answered, and that was all
            self._stop_listening()
        except httptools.HttpParserError:
            self._problem = self._problem or Problem(400, "bad-http", "This is not a request in HTTP/1.1.")
        if self._asking_since is not None and self._head > LARGEST_HEAD:
            self._problem = Problem(431, "headers-too-large", f"Headers may have at most {LARGEST_HEAD:,} bytes.")
        elif self._framing > LARGEST_HEAD:
            self._problem = Problem(400, "bad-http", "The body has more framing than content.")
        if self._problem is not None:
            self._refuse(self._problem)
        elif self._asking_since is None and (self._serving is None or self._serving.response_complete):
            self._asking_since = self._clock.elapsed()  # line breaks between requests are none, but take time

    def on_message_begin(self) -> None:
        if not self._deaf and len(self.pipeline) >= MOST_PIPELINED:
            self._stop_listening()
        if self._deaf:
            return
        super().on_message_begin()
        self._caller = self.scope[CALLER] = Caller()  # type: ignore[literal-required]
        self._asking_since, self._in_head = self._clock.elapsed(), True
        self._head = self._framing = self._hosts = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header. What comes after the body, a trailer, is none, whatever it is called."""
        if not self._in_head:
            return
        name = name.lower()
        if name in NOTED:
            if name == b"host":
                self._hosts += 1
            elif name != b"expect":
                value = SecretBytes(value)
            elif value.lower() == b"100-continue":
                self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._asking_since, self._in_head = None, False
        if self._deaf:
            return
        if self._hosts != 1:
            self._problem = Problem(400, "bad-http", "A request has one Host, neither none nor several.")
        elif not self.url.startswith(b"/"):
            self._problem = Problem(400, "bad-http", "A request is for a path, such as /health.")
        if self._problem is not None:
            self._stop_listening()
            return
        super().on_headers_complete()
        if self.pipeline:
            self.flow.resume_reading()  # also while requests wait: who does not read does not see a client go

    def on_body(self, body: bytes) -> None:
        if self._deaf:
            return
        self._framing -= (1 + FRAMING) * len(body)
        if self.cycle is not self._serving:
            self._waiting_bytes += len(body)
            if self._waiting_bytes > LARGEST_PIPELINED:
                self.pipeline.popleft()  # it is not here in full, and will not be
                self._stop_listening()
                return
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._deaf:
            self._caller.heard = True
            super().on_message_complete()

    # What goes out

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._serving = cycle
        if not self.pipeline:
            self._waiting_bytes = 0
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._deaf and self._is_idle():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        self._refuse(Problem(400, "bad-http", msg))

    def _stop_listening(self) -> None:
        """What is asked from now on is not heard. The last answer that is owed says so."""
        self._deaf, self._asking_since, self._in_head = True, None, False
        last = self.pipeline[0][0] if self.pipeline else self._serving
        if last is not None:
            last.keep_alive = False

    def _refuse(self, problem: Problem) -> None:
        """Say why, unless somebody else is owed an answer first, and hang up."""
        self._stop_listening()
        broken = self._serving
        if broken is not None and not broken.response_complete and not caller_of(broken.scope).heard:
            self._disconnect(broken)  # the rest of it will not come
        if self._is_idle() and not self.transport.is_closing():
            if broken is None or broken.response_complete or not broken.response_started:
                self.transport.write(_written(problem))
            self.transport.close()

    def _is_idle(self) -> bool:
        serving = self._serving
        return not self.pipeline and (serving is None or serving.response_complete or serving.disconnected)

    def _disconnect(self, cycle: RequestResponseCycle) -> None:
        """For whoever answers it, this client is gone."""
        cycle.disconnected = True
        cycle.message_event.set()
        caller_of(cycle.scope).left()


def _written(problem: Problem) -> bytes:
    answer = problem.answer()
    title = problem.document()["title"].encode()
    headers = [(b"content-type", answer.kind), (b"content-length", b"%d" % len(answer.body)), *SECURITY]
    head = b"".join(b"%b: %b\r\n" % pair for pair in headers)
    return b"HTTP/1.1 %d %b\r\n%bconnection: close\r\n\r\n%b" % (answer.status, title, head, answer.body)

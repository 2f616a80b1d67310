"""Fetching over HTTP/1.1: aiohttp's connections and parser, with a request and an answer of our own around them.

`aiohttp.ClientSession` is left out on purpose: it sends a request again by itself, also on a connection it has just
opened, so that one start can be two at the target; and it costs as much as all the rest of a fetch. What is used: a
connector per exit (pool, name lookup, proxy, TLS), its protocol and the C parser.
"""

from __future__ import annotations

import asyncio
import re
import resource
import ssl
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from weakref import WeakSet

import aiohttp
from aiohttp import hdrs
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http_parser import RawResponseMessage
from aiohttp_socks import ProxyTimeoutError
from multidict import CIMultiDict
from yarl import URL

from shoal.core.clock import Clock, Moment, SystemClock
from shoal.core.cookies.jar import CookieJar
from shoal.core.exit_address import ExitAddress
from shoal.core.outcome import Blame
from shoal.core.task import DIRECT
from shoal.errors import TooLate
from shoal.fetch.body import read_body
from shoal.fetch.errors import (
    FOREIGN,
    NO_SUCH_HOST,
    PROXY_REFUSALS,
    by_source,
    refused_by_proxy,
    through_proxy,
    translated,
)
from shoal.fetch.exit_connections import ExitConnections, OpenExit, open_exit
from shoal.fetch.guard.rules import NOT_PUBLIC, Guard
from shoal.fetch.protocol import Fetch, FetchError, Gate, Response

MOST_JARS = 1000
"""The cookies of those who were given some first are forgotten first."""

_SAFE_TO_REPEAT = frozenset({"GET", "HEAD", "OPTIONS"})
_URL = re.compile(r"(https?://[!\"$-.0->@-\[\]-~]+)([!\"$-~]*)(?:#|\Z)")
_LINE_BREAK = re.compile(r"[\r\n\0]")

MOST_KEPT = 1000
"""Connections that are kept for the next request, one for each of so many slots: opening one costs as much as the rest
of a small request. Idle ones cost memory, and files, of which at most half may be used for this."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds for each phase. The whole exchange is bounded by `Fetch.timeout` besides."""

    connect: float = 10.0
    """TCP and TLS together, without the name lookup."""
    first_byte: float = 30.0
    """From the request until the answer begins."""
    silence: float = 15.0
    """Between two pieces of the body."""


def direct(limit: int = 100, tls: ssl.SSLContext | None = None, guard: Guard | None = None) -> OpenExit:
    """Connections straight from this machine, at most `limit` in use at once. `tls`: None = the usual authorities.

    `guard`: of guarded requests; None = the one that lets pass what is public.
    """

    def exit_(exit_name: str, guarded: bool) -> ExitConnections:
        if exit_name != DIRECT:
            raise FetchError(f"there is no exit {exit_name!r} here", Blame.EXIT)
        return open_exit(ExitAddress(DIRECT), limit, tls, (guard or Guard()) if guarded else None)

    return exit_


class _Origin:
    """What is the same for all requests to one scheme, host and port by one exit.

    `prefix`: what stands before the path in the request line. A proxy that passes plain requests on wants to be told
    the whole URL, and who asks; through a tunnel, for https, the site is spoken to as if there were no proxy.
    """

    __slots__ = ("fields", "lines", "prefix", "request")

    def __init__(self, origin: str, fields: Mapping[str, str], exit_: ExitConnections) -> None:
        # Never sent: this is how aiohttp wants to be told where to connect.
        self.request = aiohttp.ClientRequest(
            "GET",
            URL(origin),
            headers=fields,
            loop=asyncio.get_running_loop(),
            proxy=exit_.proxy,
            proxy_headers=None if exit_.login is None else CIMultiDict({hdrs.PROXY_AUTHORIZATION: exit_.login}),
        )
        passed_on = exit_.proxy is not None and origin.startswith("http:")
        if passed_on and exit_.login is not None:
            self.request.headers[hdrs.PROXY_AUTHORIZATION] = exit_.login
        self.prefix = origin if passed_on else ""
        self.fields = self.request.headers
        self.lines = _lines(self.fields)


class HttpFetcher:
    """A `Fetcher` on aiohttp, for one event loop.

    The gate is called once for every request that is written, in the same turn of the event loop, on a connection that
    is open. Within one fetch that can be twice: where a connection that was kept turns out to have been closed by the
    server before any answer, and the method is safe to repeat, the request is sent once more. The gate may refuse that.
    `keep`: with more connections open than this, busy and idle, one is closed after its answer; None = MOST_KEPT, or
    as many as the limit of open files allows.
    """

    def __init__(
        self,
        user_agent: str,
        *,
        exits: OpenExit | None = None,
        keep: int | None = None,
        timeouts: Timeouts | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._open_exit = exits or direct()
        self._keep = _kept() if keep is None else keep
        self._timeouts = timeouts or Timeouts()
        self._connecting = aiohttp.ClientTimeout(sock_connect=self._timeouts.connect)
        self._connecting_far = aiohttp.ClientTimeout()
        self._fields = {"User-Agent": user_agent, "Accept": "*/*", "Accept-Encoding": "gzip, deflate, br"}
        self._origin = lru_cache(maxsize=4096)(lambda origin, exit_: _Origin(origin, self._fields, exit_))
        self._exits: dict[tuple[str, bool], ExitConnections] = {}
        self._clock = clock or SystemClock()
        self._jars: OrderedDict[tuple[str, str], CookieJar] = OrderedDict()
        self._opened: WeakSet[ResponseHandler] = WeakSet()
        self._left: set[ExitConnections] = set()

    async def fetch(self, fetch: Fetch, gate: Gate) -> Response:
        by = fetch.exit, fetch.guarded
        exit_ = self._exits.get(by)
        if exit_ is None:
            exit_ = self._exits[by] = self._open_exit(*by)
        exit_.busy += 1
        try:
            return await self._fetch(fetch, gate, exit_)
        finally:
            exit_.busy -= 1
            if exit_.is_left:
                await self._close_left(exit_)

    async def _fetch(self, fetch: Fetch, gate: Gate, exit_: ExitConnections) -> Response:
        patience = self._timeouts.first_byte
        total = asyncio.timeout(fetch.timeout)
        try:
            async with total:
                origin, target = self._place(fetch.url, exit_)
                jar = self._jars.get((fetch.exit, fetch.jar)) if self._jars else None
                request = _written(fetch, origin, target, jar, self._clock.now())
                if exit_.lookup is not None:
                    await exit_.lookup.address(str(origin.request.url.raw_host), origin.request.url.port or 0)
                connection, message, payload = await self._answer(origin, exit_, request, fetch, gate)
                patience = self._timeouts.silence
                try:
                    if hdrs.SET_COOKIE in message.headers:
                        self._keep_cookies(fetch, message)
                    body, received = await read_body(message, payload, fetch.max_bytes, fetch.spool, cut=fetch.cut)
                except BaseException:
                    self._hang_up(connection)
                    raise
        except FOREIGN as error:
            late = fetch.timeout if total.expired() else None
            told = translated(error, late, patience, self._timeouts.connect)
            if fetch.guarded and told.text == NO_SUCH_HOST:
                told = FetchError(NOT_PUBLIC, Blame.POLICY, permanent=True)
            if exit_.is_source:
                told = by_source(error, told)
            raise await _through(exit_, error, told, self._timeouts.connect) if exit_.proxied else told from error
        if len(self._opened) > self._keep or exit_.is_left or not payload.is_eof():
            self._hang_up(connection)
        else:
            connection.release()
        if message.code in PROXY_REFUSALS and origin.prefix and hdrs.RETRY_AFTER not in message.headers:
            raise refused_by_proxy(message.code)
        return Response(fetch.url, message.code, message.headers, body, received)

    async def close(self) -> None:
        """Let go of all connections. What is under exit_ fails. The second time: nothing."""
        opened = [*self._exits.values(), *self._left]
        self._exits.clear()
        self._left.clear()
        for exit_ in opened:
            await exit_.connector.close()

    async def forget(self, exit_name: str) -> None:
        """Let go of the connections and cookies of one exit; it is opened anew when it is next used, under what it is
        then. What is under exit_ goes on to its end, on connections that nobody takes after it."""
        for place in [place for place in self._jars if place[0] == exit_name]:
            del self._jars[place]
        for guarded in (False, True):
            exit_ = self._exits.pop((exit_name, guarded), None)
            if exit_ is not None:
                exit_.is_left = True
                self._left.add(exit_)
                await self._close_left(exit_)

    async def _close_left(self, exit_: ExitConnections) -> None:
        if not exit_.busy and exit_ in self._left:
            self._left.discard(exit_)
            await exit_.connector.close()

    def _place(self, url: str, exit_: ExitConnections) -> tuple[_Origin, str]:
        """Where to connect and what to ask for there. A URL in its normal form is sent as it is, to the letter."""
        try:
            found = _URL.match(url) or _URL.match(str(URL(url)))
            if found is not None:
                origin, target = found.groups()
                return self._origin(origin, exit_), target if target.startswith("/") else f"/{target}"
        except ValueError:
            pass
        raise FetchError("not an http URL", Blame.URL, permanent=True)

    async def _answer(
        self, origin: _Origin, exit_: ExitConnections, request: bytes, fetch: Fetch, gate: Gate
    ) -> tuple[Connection, RawResponseMessage, aiohttp.StreamReader]:
        """Send the request and wait for the head of the answer. Whoever gets the connection ends it."""
        repeatable = fetch.method in _SAFE_TO_REPEAT
        while True:
            limits = self._connecting_far if exit_.is_far else self._connecting
            connection = await exit_.connector.connect(origin.request, [], limits)
            protocol = connection.protocol
            assert protocol is not None  # noqa: S101 - aiohttp's type says Optional for a connection that was given back
            reused = protocol in self._opened
            if reused and protocol.should_close:  # it spoke without being asked: the next answer would be another's
                self._hang_up(connection)
                continue
            self._opened.add(protocol)
            try:
                message, payload = await self._send(protocol, request, fetch.method, gate)
            except TooLate:
                connection.release()
                raise
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError):
                self._hang_up(connection)
                if not (reused and repeatable):
                    raise
                repeatable = False
            except BaseException:
                self._hang_up(connection)
                raise
            else:
                return connection, message, payload

    def _hang_up(self, connection: Connection) -> None:
        if connection.protocol is not None:
            self._opened.discard(connection.protocol)  # at once: an error may keep it in memory for a while
        connection.close()

    async def _send(
        self, protocol: ResponseHandler, request: bytes, method: str, gate: Gate
    ) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
        transport = protocol.transport
        if transport is None or transport.is_closing():
            raise aiohttp.ServerDisconnectedError
        protocol.set_response_params(
            skip_payload=method == "HEAD",
            read_until_eof=True,
            auto_decompress=False,
            read_timeout=self._timeouts.first_byte,
            max_field_size=16 * 1024,
            max_headers=256,
        )
        gate()
        transport.write(request)
        protocol.start_timeout()
        message, payload = await protocol.read()
        while message.code < 200:
            if message.code == 101:
                raise FetchError("the server changed the protocol unasked", Blame.URL)
            protocol.start_timeout()
            message, payload = await protocol.read()
        if not payload.is_eof():
            protocol.read_timeout = self._timeouts.silence
            protocol.start_timeout()
        return message, payload

    def has_cookies(self, exit_name: str, jar: str, url: str) -> bool:
        """Whether a request for this URL would be sent with cookies that the site has set."""
        kept = self._jars.get((exit_name, jar))
        return kept is not None and bool(kept.of(url, self._clock.now()))

    def _keep_cookies(self, fetch: Fetch, message: RawResponseMessage) -> None:
        jar = self._jars.get((fetch.exit, fetch.jar))
        if jar is None:
            jar = self._jars[fetch.exit, fetch.jar] = CookieJar()
            if len(self._jars) > MOST_JARS:
                self._jars.popitem(last=False)
        jar.take(message.headers.getall(hdrs.SET_COOKIE), fetch.url, self._clock.now())


def _kept() -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_KEPT if files == resource.RLIM_INFINITY else min(MOST_KEPT, files // 2)


async def _through(exit_: ExitConnections, error: Exception, told: FetchError, patience: float) -> FetchError:
    """What went wrong on a exit_ through something else: its own failure, if that can be asked and says so."""
    found = through_proxy(error, told)
    if exit_.works is None:
        if isinstance(error, ProxyTimeoutError) and exit_.greets is not None and await exit_.greets(patience):
            return FetchError("no connection through the proxy in time", Blame.EXIT, doubtful=True)
        return found
    return FetchError(found.text, Blame.EXIT, permanent=found.permanent, doubtful=await exit_.works())


def _written(fetch: Fetch, origin: _Origin, target: str, jar: CookieJar | None, now: Moment) -> bytes:
    """The request as it goes over the wire, body included."""
    if not (jar or fetch.headers or fetch.body) and fetch.method == "GET":
        return f"GET {origin.prefix}{target} HTTP/1.1\r\n{origin.lines}\r\n".encode()
    fields = origin.fields.copy()
    fields.update(fetch.headers)
    if jar:
        own = fields.get(hdrs.COOKIE, "")
        by_hand = frozenset(pair.partition("=")[0].strip() for pair in own.split(";")) if own else frozenset()
        kept = jar.header(fetch.url, now, by_hand)
        if own or kept:
            fields[hdrs.COOKIE] = "; ".join(part for part in (own, kept) if part)
    for ours in (hdrs.TRANSFER_ENCODING, hdrs.CONTENT_LENGTH):
        fields.popall(ours, None)
    body = fetch.body or b""
    if body or fetch.method in ("POST", "PUT", "PATCH"):
        fields[hdrs.CONTENT_LENGTH] = str(len(body))
    if not fetch.method.isalpha() or any(_LINE_BREAK.search(name + value) for name, value in fields.items()):
        raise FetchError("a method or header that cannot be sent", Blame.URL, permanent=True)
    return f"{fetch.method} {origin.prefix}{target} HTTP/1.1\r\n{_lines(fields)}\r\n".encode(errors="replace") + body


def _lines(fields: CIMultiDict[str]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in fields.items()])

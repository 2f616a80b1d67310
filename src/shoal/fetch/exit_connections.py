"""Connections by each kind of exit: direct, another address of this machine, an HTTP or SOCKS proxy."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp_socks import ProxyConnector, ProxyType
from yarl import URL

from shoal.core.exit_address import SOURCE, ExitAddress
from shoal.fetch.guard.rules import Guard
from shoal.fetch.guard.sockets import CheckedSocks, Lookup, checked_sockets

KEEP_ALIVE = 30.0
NAMES_KEPT = 300


@dataclass(slots=True, eq=False)
class ExitConnections:
    """How requests leave by one exit: what opens its connections, and the HTTP proxy to ask, if it is one.

    `login`: what that proxy is told in `Proxy-Authorization`.
    `proxied`: another machine stands in between, and what goes wrong may be its doing.
    `is_source`: connections come from an address that was asked for, which this machine may not have.
    `lookup`: hosts are looked up with it before the proxy is asked, for the sake of its check; None = they are not.
    `works`: asked where it is in doubt whether this exit or the target has failed; None = there is nobody to ask.
    `greets`: asked where nothing came through in time whether the proxy itself answers within so many seconds; None =
    it cannot be asked.
    `is_far`: a connection may take as long to open as the whole fetch may take.
    `busy`: fetches under way. `is_left`: nobody takes it any more; its connections end with the last of these.
    """

    connector: aiohttp.BaseConnector
    proxy: URL | None = None
    login: str | None = None
    proxied: bool = False
    is_source: bool = False
    lookup: Lookup | None = None
    works: Callable[[], Awaitable[bool]] | None = None
    greets: Callable[[float], Awaitable[bool]] | None = None
    is_far: bool = False
    busy: int = 0
    is_left: bool = False


OpenExit = Callable[[str, bool], ExitConnections]
"""From the name of an exit to its connections; True = to the guarded ones that it has beside them, and that share none
with them. Called once for each, inside the event loop. Raises FetchError if unknown."""


def open_exit(
    address: ExitAddress,
    limit: int = 100,
    tls: ssl.SSLContext | None = None,
    guard: Guard | None = None,
    resolver: AbstractResolver | None = None,
) -> ExitConnections:
    """The exit that an address describes, with at most `limit` connections. `tls`: None = the usual authorities.

    `guard`: None = to anywhere. Where we connect ourselves, and where a SOCKS proxy does, what it was asked about is
    what is connected to. An HTTP proxy is told a name and looks it up itself: there the guard can only be asked before.
    `resolver`: None = that of the system.
    """
    verify: ssl.SSLContext | bool = tls or True
    lookup = None if guard is None else Lookup(guard, resolver or aiohttp.ThreadedResolver())
    if address.scheme == "socks5":
        place = (address.host, address.port, ProxyType.SOCKS5, address.user or None, address.password or None)
        options: dict[str, Any] = {"rdns": True, "limit": limit, "keepalive_timeout": KEEP_ALIVE, "ssl": verify}
        greets = partial(greets_as_socks, address.host, address.port)
        if lookup is not None:
            return ExitConnections(CheckedSocks(*place, lookup=lookup, **options), proxied=True, greets=greets)
        return ExitConnections(ProxyConnector(*place, **options), proxied=True, greets=greets)
    source = (address.host, 0) if address.scheme == SOURCE else None
    connector = aiohttp.TCPConnector(
        limit=limit,
        ttl_dns_cache=NAMES_KEPT,
        keepalive_timeout=KEEP_ALIVE,
        ssl=verify,
        local_addr=source,
        resolver=None if address.is_proxy else resolver,
        socket_factory=None if guard is None or address.is_proxy else checked_sockets(guard),
    )
    if not address.is_proxy:
        return ExitConnections(connector, is_source=source is not None)
    login = _basic(address) if address.user else None
    proxy = URL.build(scheme=address.scheme, host=address.host, port=address.port)
    return ExitConnections(connector, proxy, login, proxied=True, lookup=lookup)


async def greets_as_socks(host: str, port: int, seconds: float) -> bool:
    """Whether somebody at this address answers the first words of SOCKS5 in time, whatever login it asks for."""
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(b"\x05\x02\x00\x02")
                return (await reader.readexactly(2))[0] == 5
            finally:
                writer.close()
    except (OSError, EOFError):  # TimeoutError is an OSError
        return False


def _basic(address: ExitAddress) -> str:
    return f"Basic {b64encode(f'{address.user}:{address.password}'.encode()).decode()}"

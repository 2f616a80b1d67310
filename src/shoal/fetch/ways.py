"""Connections by each kind of exit."""

from __future__ import annotations

import socket
import ssl
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
from aiohttp.connector import AddrInfoType
from aiohttp_socks import ProxyConnector, ProxyType
from yarl import URL

from shoal.exits import SOURCE, ExitAddress
from shoal.fetch.guard import Guard
from shoal.fetch.protocol import FetchError
from shoal.outcome import Blame

KEEP_ALIVE = 30.0
NAMES_KEPT = 300


@dataclass(frozen=True, slots=True)
class Way:
    """How requests leave by one exit: what opens its connections, and the HTTP proxy to ask, if it is one.

    `login`: what that proxy is told in `Proxy-Authorization`.
    `proxied`: another machine stands in between, and what goes wrong may be its doing.
    """

    connector: aiohttp.BaseConnector
    proxy: URL | None = None
    login: str | None = None
    proxied: bool = False


Ways = Callable[[str], Way]
"""From the name of an exit to its way. Called once for each, inside the event loop. Raises FetchError if unknown."""


def open_way(
    address: ExitAddress, limit: int = 100, tls: ssl.SSLContext | None = None, guard: Guard | None = None
) -> Way:
    """The way that an address describes, with at most `limit` connections. `tls`: None = the usual authorities.

    `guard`: asked about every address that is connected to, except where a proxy does the connecting.
    """
    verify: ssl.SSLContext | bool = tls or True
    if address.scheme == "socks5":
        through = ProxyConnector(
            address.host,
            address.port,
            ProxyType.SOCKS5,
            address.user or None,
            address.password or None,
            rdns=True,
            limit=limit,
            keepalive_timeout=KEEP_ALIVE,
            ssl=verify,
        )
        return Way(through, proxied=True)
    source = (address.host, 0) if address.scheme == SOURCE else None
    connector = aiohttp.TCPConnector(
        limit=limit,
        ttl_dns_cache=NAMES_KEPT,
        keepalive_timeout=KEEP_ALIVE,
        ssl=verify,
        local_addr=source,
        socket_factory=None if guard is None or address.is_proxy else _guarded(guard),
    )
    if not address.is_proxy:
        return Way(connector)
    login = _basic(address) if address.user else None
    return Way(connector, URL.build(scheme=address.scheme, host=address.host, port=address.port), login, proxied=True)


def _guarded(guard: Guard) -> Callable[[AddrInfoType], socket.socket]:
    """Sockets for addresses that the guard lets pass: what it was asked about is what will be connected to."""

    def open_socket(target: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = target
        reason = guard.refuses_address(str(address[0]))
        if reason is not None:
            raise FetchError(reason, Blame.POLICY, permanent=True)
        return socket.socket(family, kind, protocol)

    return open_socket


def _basic(address: ExitAddress) -> str:
    return f"Basic {b64encode(f'{address.user}:{address.password}'.encode()).decode()}"

"""Connections that the guard has a say in: what it was asked about is what is connected to."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any

from aiohttp.abc import AbstractResolver
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import AddrInfoType
from aiohttp_socks import ProxyConnector

from shoal.core.outcome import Blame
from shoal.fetch.guard.rules import NOT_PUBLIC, Guard
from shoal.fetch.protocol import FetchError

FORBIDDEN = 4096
"""The number of an OSError that is the guard's: no system has this one. An OSError, so that whoever connects goes on to
the other addresses of the name."""


def checked_sockets(guard: Guard) -> Callable[[AddrInfoType], socket.socket]:
    """Opens sockets for addresses that the guard lets pass. Raises OSError(FORBIDDEN) for others."""

    def open_socket(target: AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = target
        if guard.refuses_address(str(address[0])) is not None:
            raise OSError(FORBIDDEN, NOT_PUBLIC)
        return socket.socket(family, kind, protocol)

    return open_socket


class Lookup:
    """From names to addresses that the guard lets pass, where somebody else connects to them for us."""

    def __init__(self, guard: Guard, resolver: AbstractResolver) -> None:
        self._guard = guard
        self._resolver = resolver

    async def address(self, host: str, port: int) -> str:
        """One address of this host. Raises FetchError if it has none, or any that is not to be connected to."""
        try:
            found = [each["host"] for each in await self._resolver.resolve(host, port, socket.AF_UNSPEC)]
        except OSError:
            raise FetchError(NOT_PUBLIC, Blame.POLICY, permanent=True) from None
        if any(self._guard.refuses_address(address) is not None for address in found):
            raise FetchError(NOT_PUBLIC, Blame.POLICY, permanent=True)
        return found[0]


class CheckedSocks(ProxyConnector):
    """A SOCKS proxy that is told addresses which were looked up and checked here, and never a name."""

    def __init__(self, *place: Any, lookup: Lookup, **options: Any) -> None:
        super().__init__(*place, **options)
        self._lookup = lookup

    async def _connect_via_proxy(
        self,
        host: str,
        port: int,
        ssl: ssl.SSLContext | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as the connector has it
    ) -> tuple[asyncio.Transport, ResponseHandler]:
        address = await self._lookup.address(host, port)
        transport, protocol = await super()._connect_via_proxy(address, port, None, timeout)
        if ssl is None:
            return transport, protocol
        try:
            secured = await self._loop.start_tls(transport, protocol, ssl, server_hostname=host.rstrip("."))
        except BaseException:
            transport.close()
            raise
        assert secured is not None  # noqa: S101 - asyncio's type says Optional for a connection that is lost meanwhile
        protocol.connection_made(secured)
        return secured, protocol

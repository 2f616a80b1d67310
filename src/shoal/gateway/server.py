"""One gateway process: an open store, the service on it, and a web server in front."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
from collections.abc import Iterator, Sequence
from functools import partial

import uvicorn

from shoal.api.scraper import Scraper
from shoal.core.clock import Clock, SystemClock
from shoal.delivery.supervised import supervised
from shoal.frontier.contract.jobs import Store
from shoal.gateway.app import application
from shoal.gateway.http.answer import SECURITY
from shoal.gateway.http.connection_limit import ConnectionLimit, most_connections
from shoal.gateway.http.protocol import Connection
from shoal.gateway.http.unread_answers import UnreadAnswers
from shoal.gateway.options import GatewayOptions
from shoal.gateway.service import GatewayService

BACKLOG = 4096
COLLECTED = (50_000, 10, 50)
"""Clients that wait are many objects that live for long. By Python's own thresholds all of them would be looked through
again and again: with 12,000 clients that was half of the time of a process."""

LOOK_FOR_THE_SLOW = 5.0
"""Seconds between two looks for clients who do not say what they want."""

GRACE = 5
"""Seconds that clients are given to take their answers when the gateway ends."""


def listening(host: str, port: int, *, shared: bool) -> socket.socket:
    """A socket that listens. `shared`: other processes may listen at the same place; the system spreads clients."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        opened.bind((host, port))
    except BaseException:
        opened.close()
        raise
    return opened


class _Server(uvicorn.Server):
    """uvicorn, with signals left to the command line."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class GatewayProcess:
    """Serves until told to stop."""

    def __init__(
        self, store: Store, scrapers: Sequence[Scraper], options: GatewayOptions, clock: Clock | None = None
    ) -> None:
        self._clock = clock or SystemClock()
        self._service = GatewayService(store, scrapers, options, self._clock)
        unread = UnreadAnswers(self._clock)
        config = uvicorn.Config(
            ConnectionLimit(application(self._service, unread.room_for), self._connections, most_connections()),
            loop="none",
            http=partial(Connection, clock=self._clock, unread=unread),  # type: ignore[arg-type]  # it is called, and no more
            ws="none",
            lifespan="off",
            headers=[(str(name, "ascii"), str(value, "ascii")) for name, value in SECURITY],
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=GRACE,
        )
        self._server = _Server(config)

    def _connections(self) -> int:
        return len(self._server.server_state.connections)

    async def run(self, at: socket.socket) -> None:
        """Serve on this socket until stopped."""
        gc.set_threshold(*COLLECTED)
        async with self._service.running(), asyncio.TaskGroup() as group:
            watching = group.create_task(supervised("slow clients", self._hang_up_on_the_slow, self._clock))
            await self._server.serve(sockets=[at])
            watching.cancel()

    async def _hang_up_on_the_slow(self) -> None:
        while True:
            await self._clock.sleep(LOOK_FOR_THE_SLOW)
            for connection in list(self._server.server_state.connections):
                if isinstance(connection, Connection):
                    connection.hang_up_if_slow()

    def stop(self) -> None:
        """Take no more clients, answer those who wait, and end."""
        self._service.close()
        self._server.should_exit = True

    def abort(self) -> None:
        """End at once."""
        self._server.force_exit = True
        self.stop()

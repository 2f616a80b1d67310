"""The connection limit: a process can hold so many open connections, and keeps some descriptors for itself."""

from __future__ import annotations

import resource
from collections.abc import Callable
from typing import Any

from shoal.gateway.http.answer import Problem, retry_after
from shoal.gateway.http.asgi import Receive, Scope, Send, send_answer

RESERVED = 256
"""Descriptors that clients do not get: for the store, for threads, and for telling those who are too many."""

MOST = 1_000_000


def most_connections() -> int:
    """How many connections this process may hold, as many as the system lets it have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(RESERVED, wanted - RESERVED)


class ConnectionLimit:
    """An application that is only reached while there is room. Others are told to come back, and hung up on."""

    def __init__(self, app: Any, connections: Callable[[], int], most: int) -> None:
        self._app = app
        self._connections = connections
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._connections() <= self._most:
            await self._app(scope, receive, send)
        else:
            await send_answer(send, full().answer())


def full() -> Problem:
    """Too many clients for one process."""
    return Problem(
        503,
        "too-many-clients",
        "More clients are connected than this process can serve.",
        headers=(retry_after(5), (b"connection", b"close")),
    )

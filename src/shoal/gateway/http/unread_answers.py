"""Back pressure over all connections: answers that clients do not take are bounded in bytes, and each in time."""

from __future__ import annotations

import asyncio

from shoal.core.clock import Clock

MOST_UNREAD = 64 * 1024 * 1024
"""Bytes of answers that one process holds for clients that do not take them."""

DROPPED_AFTER = 5.0
"""Seconds after which an answer that is not taken may be dropped for the sake of others."""

TAKE_WITHIN = 30.0
SLOWEST = 1024
"""Within so many seconds a client takes all, or as many bytes for each of them."""


class UnreadAnswers:
    """The connections whose clients are behind, those that have been for longest first."""

    def __init__(self, clock: Clock, most: int = MOST_UNREAD) -> None:
        self._clock = clock
        self._most = most
        self._behind: dict[asyncio.Transport, float] = {}

    def stalled(self, transport: asyncio.Transport) -> None:
        """More has been written to it than the system takes at once."""
        self._behind.setdefault(transport, self._clock.elapsed())

    def taken(self, transport: asyncio.Transport) -> None:
        """The client has caught up, or is gone."""
        self._behind.pop(transport, None)

    def room_for(self, size: int) -> bool:
        """Whether so many bytes more can be held. Makes room at the expense of those who are behind for too long."""
        held = sum(transport.get_write_buffer_size() for transport in self._behind)
        if held + size <= self._most:
            return True
        long_ago = self._clock.elapsed() - DROPPED_AFTER * 1000
        for transport, since in list(self._behind.items()):
            if since > long_ago:
                break
            held -= transport.get_write_buffer_size()
            self.taken(transport)
            transport.abort()
            if held + size <= self._most:
                return True
        return False


class TakingWatch:
    """Whether the client of one connection takes what is written to it."""

    __slots__ = ("_since", "_unread")

    def __init__(self) -> None:
        self._since: float | None = None
        self._unread = 0

    def caught_up(self) -> None:
        """It took what there was, or most of it."""
        self._since = None

    def is_over(self, unread: int, now: float) -> bool:
        """Whether its time is over, with so many bytes that it has not taken. To be asked every few seconds."""
        if not unread:
            self._since = None
            return False
        if self._since is None:
            self._since, self._unread = now, unread
            return False
        if now - self._since < TAKE_WITHIN * 1000:
            return False
        enough = self._unread - unread >= SLOWEST * TAKE_WITHIN
        self._since, self._unread = now, unread
        return not enough

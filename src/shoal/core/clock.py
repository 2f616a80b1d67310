"""Time as a dependency, so that tests can jump hours in no time."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol

Moment = int
"""Milliseconds since the epoch, by the clock of the store."""

Millis = int
"""A length of time in milliseconds."""


class Clock(Protocol):
    """Where the time comes from, and how it passes. Answers are in milliseconds; `elapsed` never goes back."""

    def now(self) -> Moment: ...

    def elapsed(self) -> float: ...

    async def sleep(self, seconds: float) -> None:
        """Return when that much time has passed by `elapsed`, never earlier; at 0 or less, after a turn of the loop."""
        ...


class SystemClock:
    """The clock of this machine."""

    def now(self) -> Moment:
        return time.time_ns() // 1_000_000

    def elapsed(self) -> float:
        return time.monotonic() * 1000.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def millis(seconds: float) -> Millis:
    """Seconds as whole milliseconds, rounded up: a delay may be longer than asked for, never shorter."""
    return -int(-seconds * 1000 // 1)


def utc(at: Moment) -> datetime:
    """A moment for programs."""
    return datetime.fromtimestamp(at / 1000, tz=UTC)


def iso(at: Moment | datetime | None) -> str | None:
    """A moment for machines: UTC, to the millisecond. None stays None."""
    if at is None:
        return None
    return (at if isinstance(at, datetime) else utc(at)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""The watchdog of the event loop: a thread that says which handler blocks it, while it does.

It asks the loop for a sign of life a few times a second, and so costs the handlers nothing.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import structlog

from shoal.core import log_events
from shoal.core.clock import Millis, SystemClock
from shoal.core.url import without_credentials
from shoal.work.task.attempt import Attempt
from shoal.work.task.failure_report import place_in

LOOK_EVERY = 0.25
"""Seconds between two questions."""

BLOCKED_AFTER = 1.0
"""Seconds without an answer, after which somebody is to be named."""

SCHEDULED_WITHIN = 0.1
"""Seconds more, so that a process that was stopped as a whole, and goes on, is not taken for a blocked one."""

SAID_AGAIN_AFTER: Millis = 60_000
"""The same line is named this seldom."""

log = structlog.get_logger("shoal")


class LoopWatchdog:
    """Watches the running loop within a `with` block. `attempt_of`: what a task of the loop works on, if anything."""

    def __init__(self, attempt_of: Callable[[asyncio.Task[Any]], Attempt | None]) -> None:
        self._attempt_of = attempt_of
        self._clock = SystemClock()
        self._over = threading.Event()
        self._said: dict[str | None, float] = {}

    def __enter__(self) -> Self:
        watching = (asyncio.get_running_loop(), threading.get_ident())
        threading.Thread(target=self._watch, args=watching, name="loop-watchdog", daemon=True).start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._over.set()

    def _watch(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        while not self._over.wait(LOOK_EVERY):
            answered = threading.Event()
            try:
                loop.call_soon_threadsafe(answered.set)
            except RuntimeError:  # closed
                return
            if answered.wait(BLOCKED_AFTER) or answered.wait(SCHEDULED_WITHIN) or self._over.is_set():
                continue
            self._report(loop, thread)
            while not answered.wait(LOOK_EVERY) and not self._over.is_set():
                pass

    def _report(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        where = place_in(sys._current_frames().get(thread))  # noqa: SLF001 - the way that Python has for this
        now = self._clock.elapsed()
        if now - self._said.get(where, -SAID_AGAIN_AFTER) < SAID_AGAIN_AFTER:
            return
        self._said[where] = now
        task = asyncio.current_task(loop)
        attempt = None if task is None else self._attempt_of(task)
        log.warning(
            log_events.LOOP_BLOCKED,
            scraper=None if attempt is None else attempt.task.scraper,
            handler=None if attempt is None else attempt.task.handler or "(default)",
            url=None if attempt is None else without_credentials(attempt.url),
            where=where,
            seconds=BLOCKED_AFTER,
        )

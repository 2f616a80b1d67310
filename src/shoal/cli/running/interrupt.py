"""Ctrl-C and SIGTERM: the first asks for an orderly end, the second forces one."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from shoal.cli.output.exit_codes import INTERRUPTED
from shoal.cli.running.signal_watch import ECHO, SIGNALS, SignalWatch
from shoal.core.clock import Clock, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SHOW_CURSOR = b"\x1b[?25h"


class Interruption:
    """How often the user asked to stop, and what to do each time: drain, force, and at last just end the process.

    It is called by the interpreter itself and not by the loop, which a handler that never returns may be blocking: if
    the loop has not even begun to drain when the second signal comes, the process ends there and then. That loses
    nothing, as everything that was acknowledged is stored.
    """

    def __init__(self, drain: Callable[[], None], force: Callable[[], None], clock: Clock) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._drain = drain
        self._force = force
        self._first: float | None = None
        self.times = 0
        self.draining = threading.Event()
        self.forcing = threading.Event()

    def __call__(self, *_: Any) -> None:
        now = self._clock.elapsed()
        if self._first is None:
            self._first = now
        elif now - self._first < ECHO:
            return
        self.times += 1
        if self.times == 1:
            self._loop.call_soon_threadsafe(self._begin)
        elif self.times == 2 and self.draining.is_set():
            self._loop.call_soon_threadsafe(self._end)
        else:
            end_at_once()

    @property
    def forced(self) -> bool:
        """Whether the user did not want to wait."""
        return self.times > 1

    def _begin(self) -> None:
        self.draining.set()
        self._drain()

    def _end(self) -> None:
        self.forcing.set()
        self._force()


def end_at_once() -> NoReturn:
    """End the process there and then, from any thread."""
    if sys.stderr.isatty():
        os.write(2, _SHOW_CURSOR)
    os._exit(INTERRUPTED)


@contextmanager
def interruptible(
    drain: Callable[[], None], force: Callable[[], None], clock: Clock | None = None
) -> Iterator[Interruption]:
    """Within the block, signals call `drain` the first time and `force` the second. Needs a running loop.

    Once it has come to that, signals are treated so until the process ends: an echo of the first may come when the
    block has ended already, and must not cut short what is said at the end.
    """
    interruption = Interruption(drain, force, clock or SystemClock())
    before = {number: signal.signal(number, interruption) for number in SIGNALS}
    try:
        with SignalWatch(interruption.draining, interruption.forcing, end_at_once):
            yield interruption
    finally:
        if not interruption.times:
            for number, handler in before.items():
                signal.signal(number, handler)


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """Within the block, Ctrl-C raises KeyboardInterrupt at once, also while a read from a pipe blocks the loop."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

"""Ctrl-C and SIGTERM: the first asks for an orderly end, the second forces one."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """How often the user asked to stop, and what to do each time."""

    def __init__(self, drain: Callable[[], None], force: Callable[[], None]) -> None:
        self._drain = drain
        self._force = force
        self.times = 0

    def __call__(self) -> None:
        self.times += 1
        if self.times == 1:
            self._drain()
        else:
            self._force()

    @property
    def forced(self) -> bool:
        """Whether the user did not want to wait."""
        return self.times > 1


@contextmanager
def interruptible(drain: Callable[[], None], force: Callable[[], None]) -> Iterator[Interruption]:
    """Within the block, signals call `drain` the first time and `force` from the second on. Needs a running loop."""
    loop = asyncio.get_running_loop()
    interruption = Interruption(drain, force)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        loop.add_signal_handler(number, interruption)
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """Within the block, Ctrl-C raises KeyboardInterrupt at once, also while a read from a pipe blocks the loop."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

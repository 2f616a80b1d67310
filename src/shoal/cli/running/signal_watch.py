"""Signals while the main thread is blocked: a thread that hears of them from C, where no Python needs to run.

Python calls the handler of a signal between two steps of its main thread. While that waits inside a library (a long
query, a lock), there is no such step; but the number of the signal is written to a pipe at once (`set_wakeup_fd`).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from shoal.core.clock import Millis, SystemClock
from shoal.work.task.failure_report import place_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

SIGNALS = (signal.SIGINT, signal.SIGTERM)

ECHO: Millis = 500
"""A time in which a second signal is taken for an echo of the first: `timeout` and some shells send it twice."""

PATIENCE = 0.5
"""Seconds that the loop is given to act, before it is taken to be blocked."""


class SignalWatch:
    """Within a `with` block: says that the first signal was heard if the loop does not, and makes the second count.

    `draining`, `forcing`: set by the loop when it has acted on the first, and on the second. `end`: what to do with the
    second signal if the loop does not act. Passes on all signals to whom they went before.
    """

    def __init__(self, draining: threading.Event, forcing: threading.Event, end: Callable[[], object]) -> None:
        self._draining = draining
        self._forcing = forcing
        self._end = end
        self._clock = SystemClock()
        self._main = threading.get_ident()
        self._first: float | None = None

    def __enter__(self) -> Self:
        self._heard, written = os.pipe()
        os.set_blocking(written, False)
        self._written = written
        self._before = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        self._thread = threading.Thread(target=self._watch, name="signal-watch", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(self._before)
        os.write(self._written, b"\0")
        self._thread.join()
        os.close(self._written)
        os.close(self._heard)

    def _watch(self) -> None:
        while number := os.read(self._heard, 1)[0]:
            if self._before >= 0:
                with suppress(OSError):
                    os.write(self._before, bytes([number]))
            if number in SIGNALS:
                self._hear()

    def _hear(self) -> None:
        now = self._clock.elapsed()
        if self._first is None:
            self._first = now
            if not self._draining.wait(PATIENCE):
                self._say()
        elif now - self._first >= ECHO and (not self._draining.is_set() or not self._forcing.wait(PATIENCE)):
            self._end()

    def _say(self) -> None:
        where = place_in(sys._current_frames().get(self._main))  # noqa: SLF001 - the way that Python has for this
        line = f"Stopping as soon as {where} returns. Press Ctrl-C again to stop at once; nothing stored is lost.\n"
        with suppress(OSError):
            os.write(2, line.encode())

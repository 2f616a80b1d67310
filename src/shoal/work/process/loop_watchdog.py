"""The watchdog of the event loop: names the handler that blocks it, stops it, and ends the process if it cannot.

A thread asks the loop for a sign of life a few times a second, and so costs the handlers nothing. What happens to one
that blocks:

| after | what blocks | what happens |
| --- | --- | --- |
| a second | anything | who it is gets logged |
| `max_block` | Python, a sleep, a socket | a signal makes HandlerStopped come up where it stands: its task has failed |
| `max_block` | a regular expression: no thread runs | the same, by the kernel's timer of time spent computing |
| three times that | C that heeds no signal | the process ends: a crash of that task alone; leases come back at once |
| three times that | such C, and no thread runs | the kernel ends the process: a crash of all handlers under way |

So the loop stands still for half a minute at most, and leases, which live for minutes, are not lost meanwhile. Timers
count computing, not time: a process that was stopped as a whole, and goes on, is not taken for a blocked one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

import structlog

from shoal.core import log_events
from shoal.core.clock import Millis, SystemClock
from shoal.core.url import without_credentials
from shoal.delivery.held_lease import HeldLease
from shoal.work.task.attempt import Attempt
from shoal.work.task.failure_report import place_in
from shoal.work.task.handler_failure import HandlerStopped

LOOK_EVERY = 0.25
"""Seconds between two questions."""

BLOCKED_AFTER = 1.0
"""Seconds without an answer, after which somebody is to be named."""

SCHEDULED_WITHIN = 0.1
"""Seconds more, so that a process that was stopped as a whole, and goes on, is not taken for a blocked one."""

SAID_AGAIN_AFTER: Millis = 60_000
"""The same line is named this seldom."""

LOST_AFTER = 3
"""Times `max_block`, after which what cannot be stopped ends with its process."""

ENDED = 70
"""The exit code then: an internal error, by the convention of sysexits.h."""

_DEBUGGERS = ("bdb", "pdb", "pydevd", "_pydevd_bundle", "debugpy")

log = structlog.get_logger("shoal")


class LoopWatchdog:
    """Watches the running loop within a `with` block.

    `attempt_of`: what a task of the loop works on, if anything: only what works on a task is stopped. `charge_only`:
    is told whose fault the end of the process will be. `max_block`: seconds; 0 = nothing is stopped.
    Outside of the main thread, and where somebody else uses these signals, nothing can be stopped but the process.
    """

    def __init__(
        self,
        attempt_of: Callable[[asyncio.Task[Any]], Attempt | None],
        charge_only: Callable[[HeldLease], None],
        max_block: float,
    ) -> None:
        self._attempt_of = attempt_of
        self._charge_only = charge_only
        self._max_block = max_block
        self._clock = SystemClock()
        self._over = threading.Event()
        self._said: dict[str | None, float] = {}
        self._answered = threading.Event()
        self._asked_at = self._looked_at = self._clock.elapsed()
        self._signals: tuple[signal.Signals, ...] = ()
        self._setting = threading.Lock()

    def __enter__(self) -> Self:
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        if self._max_block and threading.current_thread() is threading.main_thread():
            wanted = (signal.SIGVTALRM, signal.SIGPROF)
            if all(signal.getsignal(number) is signal.SIG_DFL for number in wanted):
                self._signals = wanted
                signal.signal(signal.SIGVTALRM, self._ring)
                self._set_timers(self._max_block)  # at once: who blocks from the beginning may keep the thread from it
        threading.Thread(target=self._watch, name="loop-watchdog", daemon=True).start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._signals:
            with self._setting:  # the thread sends none and sets none any more: from here on they would kill
                self._set(0.0)
                self._signals = ()
            signal.signal(signal.SIGVTALRM, signal.SIG_DFL)

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY):
            self._answered = answered = threading.Event()
            self._asked_at = self._clock.elapsed()
            self._set_timers(self._max_block)
            try:
                self._loop.call_soon_threadsafe(answered.set)
            except RuntimeError:  # closed
                return
            if answered.wait(BLOCKED_AFTER) or answered.wait(SCHEDULED_WITHIN) or self._over.is_set():
                continue
            self._report()
            self._wait_for(answered)

    def _wait_for(self, answered: threading.Event) -> None:
        """Until the loop answers. Time is counted in looks: one that was late because nobody ran is one look."""
        blocked = BLOCKED_AFTER
        stop_at = self._max_block
        while not answered.wait(LOOK_EVERY) and not self._over.is_set():
            blocked += LOOK_EVERY
            self._set_timers(self._max_block)  # for those that do not let this thread run
            if not self._max_block or self._culprit() is None:
                continue
            if blocked >= LOST_AFTER * self._max_block:
                self._end_process(blocked)
            elif blocked >= stop_at:
                stop_at += self._max_block / 4
                with self._setting:
                    if self._signals:
                        signal.pthread_kill(self._thread, signal.SIGVTALRM)

    def _set_timers(self, seconds: float) -> None:
        """Of the time that this process spends computing: they go off if this thread cannot set them anew."""
        self._looked_at = self._clock.elapsed()
        with self._setting:
            if self._signals:
                self._set(seconds)

    def _set(self, seconds: float) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds / 4)
        signal.setitimer(signal.ITIMER_PROF, LOST_AFTER * seconds)

    def _ring(self, _number: int, frame: FrameType | None) -> None:
        """In the thread of the loop, wherever that stands: raises what stops it there."""
        long_ago = self._clock.elapsed() - 900 * self._max_block
        blocked = self._asked_at < long_ago and not self._answered.is_set()
        if not blocked and self._looked_at >= long_ago:
            return
        if self._culprit() is not None and not _is_debugged(frame):
            raise HandlerStopped(f"held up its worker for more than {self._max_block:g} s and was stopped")

    def _culprit(self) -> Attempt | None:
        task = asyncio.current_task(self._loop)
        return None if task is None else self._attempt_of(task)

    def _end_process(self, blocked: float) -> None:
        """As a decision: whoever waits for this process learns at once that its leases are free."""
        culprit = self._culprit()
        if culprit is None or _is_debugged(self._frame()):
            return
        self._charge_only(culprit.held)
        log.error(
            log_events.LOOP_LOST,
            scraper=culprit.task.scraper,
            handler=culprit.task.handler or "(default)",
            url=without_credentials(culprit.url),
            where=self._place(),
            seconds=blocked,
        )
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ENDED)

    def _report(self) -> None:
        """Name who blocks, and the same line seldom."""
        where, attempt = self._place(), self._culprit()
        now = self._clock.elapsed()
        if now - self._said.get(where, -SAID_AGAIN_AFTER) < SAID_AGAIN_AFTER:
            return
        self._said[where] = now
        log.warning(
            log_events.LOOP_BLOCKED,
            scraper=None if attempt is None else attempt.task.scraper,
            handler=None if attempt is None else attempt.task.handler or "(default)",
            url=None if attempt is None else without_credentials(attempt.url),
            where=where,
            seconds=BLOCKED_AFTER,
        )

    def _place(self) -> str | None:
        return place_in(self._frame())

    def _frame(self) -> FrameType | None:
        return sys._current_frames().get(self._thread)  # noqa: SLF001 - the way that Python has for this


def _is_debugged(frame: FrameType | None) -> bool:
    """Whether somebody looks at the handler in a debugger, and takes their time."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in _DEBUGGERS:
            return True
        frame = frame.f_back
    return False

"""A thread pool for code that is not ours and may take its time: at work on many things, waiting for none too long."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from shoal.core.clock import Clock

Result = TypeVar("Result")
Function = Callable[[asyncio.AbstractEventLoop], Result]
"""Gets the loop of the thread it runs in, for what it has to await."""

THREADS = 4
MOST_STUCK = 16


class TooBusy(Exception):
    """No thread had time for it, because too many are lost to work that does not end."""


@dataclass(slots=True)
class _Work:
    function: Function[Any]
    seconds: float
    future: asyncio.Future[Any]
    began: float | None = None
    """Milliseconds, by `elapsed`."""
    abandoned: bool = False
    result: Any = None
    error: BaseException | None = None

    def report(self) -> None:
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.result)


class StartThreads:
    """A few threads, for one event loop. Results come back in groups: one wake-up of the loop for many.

    `most_stuck`: threads that may be lost to work that does not end, before no more work is taken.
    """

    def __init__(self, clock: Clock, threads: int = THREADS, most_stuck: int = MOST_STUCK) -> None:
        self._clock = clock
        self._most_stuck = most_stuck
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._finished: list[_Work] = []
        self._lock = threading.Lock()
        self._threads = 0
        self._stuck = 0
        for _ in range(threads):
            self._hire()

    async def run(self, function: Function[Result], seconds: float) -> Result:
        """What the function returns or raises. Raises TimeoutError if that takes more seconds, and TooBusy if as many
        have passed before it could even begin.

        A function that took too long goes on in its thread, which is replaced; nobody hears of its result.
        """
        if self._stuck >= self._most_stuck:
            raise TooBusy
        work = _Work(function, seconds, self._loop.create_future())
        self._queue.put(work)
        over = self._loop.call_later(seconds, self._look_at, work)
        try:
            result: Result = await work.future
            return result
        finally:
            over.cancel()

    def close(self) -> None:
        """Let the threads end when they have done what they were given."""
        for _ in range(self._threads):
            self._queue.put(None)

    def _hire(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, name="shoal-start", daemon=True).start()

    def _work(self) -> None:
        with contextlib.closing(asyncio.new_event_loop()) as loop:
            while (work := self._queue.get()) is not None:
                with self._lock:
                    if work.abandoned:
                        continue
                    work.began = self._clock.elapsed()
                try:
                    work.result = work.function(loop)
                except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for it
                    work.error = error
                with self._lock:
                    first = not self._finished
                    self._finished.append(work)
                if first:
                    with contextlib.suppress(RuntimeError):  # the loop is gone, and nobody waits
                        self._loop.call_soon_threadsafe(self._report)

    def _report(self) -> None:
        with self._lock:
            finished, self._finished = self._finished, []
        for work in finished:
            if work.abandoned:
                self._stuck -= 1
                self._threads -= 1
                self._queue.put(None)  # its thread was replaced when it was given up
            work.report()

    def _look_at(self, work: _Work) -> None:
        """Its time may be over."""
        if work.future.done():
            return
        with self._lock:
            left = 0.0 if work.began is None else work.seconds - (self._clock.elapsed() - work.began) / 1000
            work.abandoned = left <= 0
        if left > 0:
            self._loop.call_later(left, self._look_at, work)
        elif work.began is None:
            work.future.set_exception(TooBusy())
        else:
            self._stuck += 1
            self._hire()
            work.future.set_exception(TimeoutError())

"""A thread pool for code that is not ours and may take its time: at work for many clients, waiting for none too long.

Clients are served in turn (fair queueing), and each has a share: whoever brings much, or what takes long, waits behind
itself. A client that has nothing at work is given a thread of its own where all others are busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from shoal.core.clock import Clock
from shoal.gateway.limits.fair_queue import FairQueue

Result = TypeVar("Result")
Function = Callable[[asyncio.AbstractEventLoop], Result]
"""Gets the loop of the thread it runs in, for what it has to await."""

THREADS = 4
MOST_WAITING = 5000
"""Work that waits for a thread, of all clients. Beyond that, whoever has most is told to come back."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one client may have: `running` at work at once, `stuck` threads lost to work that does not end.

    `guests`: how many clients, beyond the threads there are, are each given one more, so that none waits for others.
    """

    running: int = 2
    stuck: int = 4
    guests: int = 16


class TooBusy(Exception):
    """No thread had time for it, because the client has too much at work, or has lost too many threads."""


@dataclass(slots=True, eq=False)
class _Work:
    client: str
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

    def refuse(self) -> None:
        if not self.future.done():
            self.future.set_exception(TooBusy())


class StartThreads:
    """A few threads, for one event loop. Results come back in groups: one wake-up of the loop for many.

    `share`: of each client. `most_stuck`: threads that all clients together may lose before no more work is taken.
    Threads take their work themselves, one after the other; `_wake` is for those that found none.
    """

    def __init__(self, clock: Clock, threads: int = THREADS, most_stuck: int = 64, share: Share | None = None) -> None:
        self._clock = clock
        self._usual = threads
        self._most_stuck = most_stuck
        self._share = share or Share()
        self._loop = asyncio.get_running_loop()
        self.long_list = threading.Lock()
        """For those at work who share it: held while one does what takes the time of all."""
        self._wake: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._lock = threading.Lock()  # for all that follows
        self._waiting: FairQueue[_Work] = FairQueue(MOST_WAITING)
        self._finished: list[_Work] = []
        self._running: dict[str, int] = {}
        self._at_work = 0
        self._stuck: dict[str, int] = {}
        self.stuck = 0
        self._threads = 0
        with self._lock:
            for _ in range(threads):
                self._hire()

    async def run(self, function: Function[Result], seconds: float, client: str = "") -> Result:
        """What the function returns or raises. Raises TimeoutError if that takes more seconds, and TooBusy if as many
        have passed before it could even begin, or if the client has had its share.

        A function that took too long goes on in its thread, which is replaced; nobody hears of its result.
        """
        work = _Work(client, function, seconds, self._loop.create_future())
        with self._lock:
            if self._stuck.get(client, 0) >= self._share.stuck or self.stuck >= self._most_stuck:
                raise TooBusy
            superfluous = self._waiting.put(client, work)
            self._call_up()
        if superfluous is not None:
            superfluous.refuse()
        over = self._loop.call_later(seconds, self._look_at, work)
        try:
            result: Result = await work.future
            return result
        finally:
            over.cancel()

    def close(self) -> None:
        """Let the threads end when they have done what they were given."""
        for _ in range(self._threads + self.stuck):
            self._wake.put(False)

    def _may(self, client: str) -> bool:
        """Whether work of this client may begin: within its share, or as the one thing that it has at work."""
        mine = self._running.get(client, 0)
        if self._at_work < self._usual:
            return mine < self._share.running
        return not mine and self._at_work < self._usual + self._share.guests

    def _call_up(self) -> None:
        """If there is work that may begin: wake a thread for it, or take on another one where all are busy."""
        if self._at_work >= self._usual + self._share.guests or not self._waiting.has_next(self._may):
            return
        if self._at_work < self._threads:
            self._wake.put(True)
        else:
            self._hire()

    def _hire(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, name="shoal-start", daemon=True).start()

    def _work(self) -> None:
        with contextlib.closing(asyncio.new_event_loop()) as loop:
            ended: _Work | None = None
            while True:
                with self._lock:
                    if ended is not None and self._end(ended):
                        return
                    ended = self._next()
                    if ended is None and self._threads > self._usual:
                        self._threads -= 1
                        return
                if ended is not None:
                    try:
                        ended.result = ended.function(loop)
                    except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for it
                        ended.error = error
                elif not self._wake.get():
                    return

    def _next(self) -> _Work | None:
        while (found := self._waiting.take(self._may)) is not None:
            client, work = found
            if not work.future.done():
                work.began = self._clock.elapsed()
                self._running[client] = self._running.get(client, 0) + 1
                self._at_work += 1
                if self._waiting:
                    self._call_up()
                return work
        return None

    def _end(self, work: _Work) -> bool:
        """Tell of what has ended. Answers whether its thread was replaced meanwhile, and is to end as well."""
        if work.abandoned:
            self.stuck -= 1
            _count_down(self._stuck, work.client)
            return True
        self._at_work -= 1
        _count_down(self._running, work.client)
        self._finished.append(work)
        if len(self._finished) == 1:
            with contextlib.suppress(RuntimeError):  # the loop is gone, and nobody waits
                self._loop.call_soon_threadsafe(self._report)
        return False

    def _report(self) -> None:
        with self._lock:
            finished, self._finished = self._finished, []
        for work in finished:
            work.report()

    def _look_at(self, work: _Work) -> None:
        """Its time may be over."""
        if work.future.done():
            return
        with self._lock:
            if work in self._finished:
                return
            if work.began is None:
                work.refuse()
                return
            left = work.seconds - (self._clock.elapsed() - work.began) / 1000
            if left <= 0:
                self._give_up(work)
        if left > 0:
            self._loop.call_later(left, self._look_at, work)
        else:
            work.future.set_exception(TimeoutError())

    def _give_up(self, work: _Work) -> None:
        """Its thread is lost until it ends; another one takes its place."""
        work.abandoned = True
        self._at_work -= 1
        _count_down(self._running, work.client)
        self.stuck += 1
        self._stuck[work.client] = self._stuck.get(work.client, 0) + 1
        self._threads -= 1
        self._hire()


def _count_down(counts: dict[str, int], client: str) -> None:
    counts[client] -= 1
    if not counts[client]:
        del counts[client]

"""The attempts that are under way in one worker: begun, ended, and cut short where they may not go on."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from shoal.core.clock import Clock
from shoal.core.notes import Note
from shoal.core.outcome import Settlement
from shoal.delivery.held_lease import HeldLease
from shoal.delivery.waiting import news_or_time
from shoal.delivery.watcher import LeaseWatcher
from shoal.work.exits.exit_set import ExitSet
from shoal.work.store.known_links import KnownLinks
from shoal.work.store.request_recorder import RequestRecorder
from shoal.work.store.single_flight import SingleFlight
from shoal.work.store.task_budget import TaskBudget
from shoal.work.task.attempt import Attempt

Execute = Callable[[Attempt], Coroutine[Any, Any, Settlement]]
Settle = Callable[[HeldLease, Settlement], None]


class InFlight(LeaseWatcher):
    """Passes on what becomes of their leases to the parts of the worker that want to know.

    `log`: where requests are written down; None = nowhere.
    """

    def __init__(
        self,
        exits: ExitSet,
        single_flight: SingleFlight,
        known_links: KnownLinks,
        budget: TaskBudget,
        log: RequestRecorder | None,
        clock: Clock,
    ) -> None:
        self._exits = exits
        self._single_flight = single_flight
        self._known_links = known_links
        self._budget = budget
        self._log = log
        self._clock = clock
        self._under_way: dict[int, tuple[Attempt, asyncio.Task[Settlement]]] = {}
        self._news = asyncio.Event()
        self._failed = False
        self._end_by = math.inf

    def begin(self, group: asyncio.TaskGroup, attempt: Attempt, execute: Execute, settle: Settle) -> None:
        """Let it be executed, and settled as that says."""
        task = group.create_task(execute(attempt))
        self._under_way[attempt.lease.token] = attempt, task
        task.add_done_callback(lambda ended: self._end(attempt, ended, settle))

    def _end(self, attempt: Attempt, task: asyncio.Task[Settlement], settle: Settle) -> None:
        """One lease is at its end. A cancelled one goes back; its request, if any, counts for the clock of its slot.

        This is a callback because a task that is cancelled before its first step never runs at all.
        """
        del self._under_way[attempt.lease.token]
        if self._log is not None and attempt.made:
            self._log.write(attempt)
        failed = task.cancelled() or task.exception() is not None
        settlement = attempt.given_back() if failed else task.result()
        self._exits.ended(attempt.held, settlement)
        settle(attempt.held, settlement)
        self._news.set()

    def attempt_of(self, task: asyncio.Task[Any]) -> Attempt | None:
        """What a task of the loop works on; None = something else. May be asked by another thread."""
        return next((attempt for attempt, own in list(self._under_way.values()) if own is task), None)

    def end_within(self, grace: float) -> None:
        """What is under way in so many seconds is cut short then. The earliest of several counts."""
        self._end_by = min(self._end_by, self._clock.elapsed() + grace * 1000)
        self._news.set()

    async def wind_down(self) -> None:
        """What has made no request yet goes back at once; the rest gets its grace, and then goes back too."""
        while self._under_way:
            left = self._end_by - self._clock.elapsed()
            for attempt, task in self._under_way.values():
                if (left <= 0 or self._failed or not attempt.held.starts) and not task.cancelling():
                    task.cancel()
            await news_or_time(self._news, left / 1000 if 0 < left < math.inf else None, self._clock)

    # As a watcher of leases

    def notes(self) -> Sequence[Note]:
        return () if self._log is None else self._log.take()

    def settled(
        self, heard: Sequence[Settlement], stood: Sequence[Settlement], unsettled: Sequence[Settlement]
    ) -> None:
        self._exits.settled(stood, unsettled)
        self._single_flight.land(settlement.token for settlement in heard)
        self._known_links.settled(stood)
        self._budget.heard(heard)

    def lost(self, held: HeldLease) -> None:
        attempt_and_task = self._under_way.get(held.lease.token)
        if attempt_and_task is not None:
            attempt_and_task[1].cancel()

    def failed(self, error: BaseException) -> None:
        self._failed = True
        self._news.set()

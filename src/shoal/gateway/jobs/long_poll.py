"""Long polling: one read of all awaited jobs per tick, however many clients wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence, Set

from shoal.core.clock import Clock
from shoal.delivery.supervised import supervised
from shoal.frontier.contract.jobs import ANY, Jobs, JobStatus
from shoal.gateway.http.answer import Problem
from shoal.gateway.http.caller import Caller, ClientGone
from shoal.gateway.jobs.shared_reads import SharedReads
from shoal.gateway.limits.store_breaker import StoreBreaker

TICK = 0.1
"""Seconds."""

LONGEST_TICK = 2.0
SHARE = 10.0
"""A tick is at least this many times as long as its read takes: so waiting costs at most a tenth of a process."""

LOOKS_AT_ONCE = 2000

Wanted = Callable[[JobStatus], bool]


class _Waiter:
    __slots__ = ("future", "owner", "wanted")

    def __init__(self, wanted: Wanted, future: asyncio.Future[JobStatus | None], owner: str) -> None:
        self.wanted = wanted
        self.future = future
        self.owner = owner

    def give(self, status: JobStatus | None) -> None:
        if not self.future.done():
            self.future.set_result(status)

    def leave(self) -> None:
        if not self.future.done():
            self.future.set_exception(ClientGone())


class LongPolls:
    """How jobs stand now, and the news of those that somebody waits for."""

    def __init__(self, jobs: Jobs, breaker: StoreBreaker, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock
        self._breaker = breaker
        self._looks = SharedReads(self._read, LOOKS_AT_ONCE, clock)
        self._waiters: dict[str, list[_Waiter]] = {}
        self._versions: dict[str, int] = {}
        self._some = asyncio.Event()
        self.waiting = 0
        self.reads = 0

    async def look(self, job_id: str) -> JobStatus | None:
        """How a job stands now; None = there is none. Raises Problem if the store cannot be asked."""
        self._breaker.check()
        return await self._looks.get(job_id)

    async def wait(
        self, status: JobStatus, wanted: Wanted, seconds: float, caller: Caller | None = None, owner: str = ""
    ) -> JobStatus:
        """The next status of this job that is wanted, or after so many seconds how it stands then.

        `status`: how it was when the client was told last. `caller`: who waits; when it goes, so does the wait, with
        ClientGone. `owner`: the id of its key, for `dismiss`.
        """
        loop = asyncio.get_running_loop()
        waiter = _Waiter(wanted, loop.create_future(), owner)
        if caller is not None:
            caller.check()
            caller.leave = waiter.leave
        job_id = status.job_id
        self._waiters.setdefault(job_id, []).append(waiter)
        self._versions.setdefault(job_id, status.version)
        self._some.set()
        self.waiting += 1
        over = loop.call_later(seconds, waiter.give, None)
        try:
            news = await waiter.future
        finally:
            over.cancel()
            if caller is not None:
                caller.leave = None
            self.waiting -= 1
            self._forget(job_id, waiter)
        return news or await self.look(job_id) or status

    def dismiss(self, owners: Set[str]) -> None:
        """Let nobody wait any longer whose key is one of these."""
        for waiters in list(self._waiters.values()):
            for waiter in waiters:
                if waiter.owner in owners:
                    waiter.give(None)

    def release(self) -> None:
        """Answer everybody who waits, with what is known: the gateway ends."""
        for waiters in list(self._waiters.values()):
            for waiter in waiters:
                waiter.give(None)

    async def run(self) -> None:
        """Look for looks and for news, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(supervised("looks at jobs", self._looks.run, self._clock))
            group.create_task(supervised("news of jobs", self._keep_ticking, self._clock))

    async def _keep_ticking(self) -> None:
        while True:
            await self._some.wait()
            began = self._clock.elapsed()
            await self._tick()
            took = (self._clock.elapsed() - began) / 1000
            await self._clock.sleep(min(LONGEST_TICK, max(TICK, SHARE * took)))

    async def _tick(self) -> None:
        try:
            self.reads += 1
            news = await self._breaker.ask(lambda: self._jobs.statuses(dict(self._versions)))
        except Problem:
            return  # they wait on; when their time is over they are told
        for status in news:
            waiters = self._waiters.get(status.job_id)
            if waiters is None:
                continue
            self._versions[status.job_id] = status.version
            for waiter in waiters:
                if waiter.wanted(status):
                    waiter.give(status)

    def _forget(self, job_id: str, waiter: _Waiter) -> None:
        waiters = self._waiters[job_id]
        waiters.remove(waiter)
        if not waiters:
            del self._waiters[job_id], self._versions[job_id]
            if not self._waiters:
                self._some.clear()

    async def _read(self, job_ids: Sequence[str]) -> dict[str, JobStatus]:
        known = dict.fromkeys(job_ids, ANY)
        self.reads += 1
        found = await self._breaker.ask(lambda: self._jobs.statuses(known))
        return {status.job_id: status for status in found}

"""A worker: claims what it can start at once, works on it, settles in groups, and never sits on what it cannot do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

import structlog

from shoal.clock import Clock, Millis, SystemClock
from shoal.fetch.http import HttpFetcher, direct
from shoal.fetch.robots import RobotsBook
from shoal.frontier.protocol import Ask, Engine, Granted, Renewal
from shoal.outcome import Done, Settlement, Snoozed
from shoal.presence import introduce
from shoal.scraper import Scraper
from shoal.task import DEFAULT_POOL, DIRECT, Kind, Lease
from shoal.work.executor import Executor, settlement
from shoal.work.held import HeldLease

PAGE_LANES = ("priority", "bulk")
"""What a worker works on unless told otherwise. The other lanes have workers of their own."""

LINGER = 0.004
"""Seconds that the first of a group of settlements waits for company."""

AHEAD: Millis = 20
"""How early a lease is taken, so that the way to the store and back costs nothing of the pace."""

POLL = (0.15, 0.3)
"""Seconds between two looks at a store where others may have changed something: between these, at random."""

SWEEP_EVERY = 2.0
RENEW_EVERY = 30.0

log = structlog.get_logger("shoal")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How one worker works.

    `concurrency`: requests in flight at once, over all sites. `queues`: None = all runs of its scrapers.
    `drain`: end when nothing is left to do in its lanes and queues. `grace`: seconds that requests in flight are given
    to end after `stop`, before their leases are given back.
    """

    user_agent: str
    concurrency: int = 64
    lanes: Sequence[str] = PAGE_LANES
    queues: Sequence[str] | None = None
    drain: bool = False
    grace: float = 10.0
    exits: dict[str, Sequence[str]] = field(default_factory=lambda: {DEFAULT_POOL: (DIRECT,)})


class Worker:
    """Runs in one event loop. `run` ends when drained or stopped; what it held then is settled or given back."""

    def __init__(
        self,
        engine: Engine,
        scrapers: Sequence[Scraper],
        options: WorkerOptions,
        *,
        clock: Clock | None = None,
        seed: int | None = None,
    ) -> None:
        self._engine = engine
        self._scrapers = {scraper.name: scraper for scraper in scrapers}
        self._options = options
        self._clock = clock or SystemClock()
        self._chance = random.Random(seed)  # noqa: S311 - jitter, not secrets
        self._held: dict[int, HeldLease] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._finished: list[Settlement] = []
        self._news = asyncio.Event()
        self._lost: set[int] = set()
        self._grace = options.grace
        self._stopping = False

    def stop(self) -> None:
        """Claim nothing more; let what is in flight end, or give it back when `grace` is over. May be called twice."""
        self._stopping = True
        self._news.set()

    def abort(self) -> None:
        """Stop at once, and give back what is held without waiting for it."""
        self._grace = 0.0
        self.stop()
        for task in self._tasks.values():
            task.cancel()

    async def run(self) -> None:
        """Work until there is nothing to do (`drain`) or `stop` is called. Raises EngineError if the store fails."""
        options = self._options
        self._info, notebook = introduce()
        async with AsyncExitStack() as stack:
            stack.callback(notebook.close)
            fetcher = HttpFetcher(options.user_agent, connector=direct(limit=options.concurrency))
            stack.push_async_callback(fetcher.close)
            robots = RobotsBook(self._engine.cache, options.user_agent, clock=self._clock)
            self._executor = Executor(self._scrapers, fetcher, robots, notebook, self._clock, self._chance)
            await self._engine.frontier.sweep()
            async with asyncio.TaskGroup() as group:
                chores = [group.create_task(self._keep_sweeping()), group.create_task(self._keep_renewing())]
                await self._work(group)
                for chore in chores:
                    chore.cancel()

    async def _work(self, group: asyncio.TaskGroup) -> None:
        granted: Granted | None = None
        while not (self._over(granted) or (self._stopping and not self._held and not self._finished)):
            if self._stopping:
                await self._wind_down()
            granted = await self._exchange()
            for held in (self._hold(lease, granted) for lease in granted.leases):
                self._tasks[held.lease.token] = group.create_task(self._work_on(held))
            await self._wait(granted)

    def _over(self, granted: Granted | None) -> bool:
        drained = granted is not None and not granted.left and not self._held and not self._finished
        return self._options.drain and drained

    async def _exchange(self) -> Granted:
        options = self._options
        settlements, self._finished = self._finished, []
        self._news.clear()
        want = 0 if self._stopping else max(0, options.concurrency - len(self._held))
        ask = Ask(
            self._info,
            tuple(self._scrapers),
            options.lanes,
            options.exits,
            want,
            options.queues,
            tuple(settlements),
            AHEAD,
        )
        self._sent = self._clock.elapsed()
        granted = await self._engine.frontier.exchange(ask)
        late = set(granted.late)
        if late:
            log.warning("settlements came too late and were thrown away", count=len(late))
        for settled in settlements:
            if settled.token not in late and isinstance(settled.outcome, Done) and settled.outcome.tasks:
                self._executor.recent.add(settled.run_id, _plain_pages(settled.outcome))
        return granted

    def _hold(self, lease: Lease, granted: Granted) -> HeldLease:
        held = HeldLease(lease, self._clock, self._shift(granted))
        self._held[lease.token] = held
        return held

    def _shift(self, granted: Granted) -> float:
        """What turns local `elapsed` into the store's time. Without a shared clock, the claim cannot have happened
        before the question was sent: taking that moment for it makes every start look late rather than early."""
        if self._engine.shares_clock:
            return self._clock.now() - self._clock.elapsed()
        return granted.now - self._sent

    async def _work_on(self, held: HeldLease) -> None:
        """One lease. A cancelled one is given back; its request, if any, counts for the clock of its slot."""
        token = held.lease.token
        try:
            ended = await self._executor.execute(held)
        except asyncio.CancelledError:
            if not (self._stopping or token in self._lost):
                raise
            ended = settlement(held, Snoozed())
        finally:
            del self._held[token], self._tasks[token]
            self._lost.discard(token)
        self._finished.append(ended)
        self._news.set()

    async def _wait(self, granted: Granted) -> None:
        """Until it is worth going back to the store: something to settle, something due, or time to look again."""
        if self._finished and self._held:
            await self._linger()
        if self._finished or self._stopping or (self._options.drain and not granted.left and not self._held):
            return
        seconds = self._chance.uniform(*POLL)
        if len(self._held) >= self._options.concurrency:
            seconds = SWEEP_EVERY
        elif granted.wake_at is not None:
            until_due = (granted.wake_at - granted.now - (self._clock.elapsed() - self._sent)) / 1000
            seconds = max(0.0, min(until_due, seconds))
        await self._sleep(seconds)
        if self._finished and self._held:
            await self._linger()

    async def _linger(self) -> None:
        """Let a few more settlements come in, unless there are plenty."""
        if len(self._finished) * 2 < self._options.concurrency:
            await asyncio.sleep(LINGER)

    async def _sleep(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()

    async def _wind_down(self) -> None:
        """What has not made a request yet is given back at once; the rest gets its grace, then is given back too."""
        for held in list(self._held.values()):
            if not held.starts:
                self._tasks[held.lease.token].cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=self._grace)
        for task in self._tasks.values():
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def _keep_sweeping(self) -> None:
        while True:
            swept = await self._engine.frontier.sweep()
            if swept.returned or swept.buried:
                log.warning("brought back what lost workers held", returned=swept.returned, dead=swept.buried)
            await asyncio.sleep(0 if swept.more else SWEEP_EVERY * self._chance.uniform(0.8, 1.2))

    async def _keep_renewing(self) -> None:
        while True:
            await asyncio.sleep(RENEW_EVERY)
            if not self._held:
                continue
            now = self._clock.elapsed()
            renewals = [Renewal(held.lease.task.id, token) for token, held in self._held.items()]
            lost = await self._engine.frontier.renew(self._info, renewals)
            for renewal in renewals:
                held = self._held.get(renewal.token)
                if held is not None and renewal.token not in lost:
                    held.renewed(now)
            for token in lost:
                if token in self._tasks:
                    log.warning("lease lost; its work is stopped", url=self._held[token].lease.task.url)
                    self._lost.add(token)
                    self._tasks[token].cancel()


def _plain_pages(done: Done) -> list[str]:
    return [
        task.url
        for task in done.tasks
        if task.key is not None and task.extra.method == "GET" and task.extra.kind is Kind.PAGE
    ]

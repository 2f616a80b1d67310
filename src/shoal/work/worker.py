"""A worker: claims what it can start at once, works on it, settles in groups, and never sits on what it cannot do."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

import structlog

from shoal.clock import Clock, Millis, SystemClock
from shoal.errors import EngineError, UsageError
from shoal.fetch.http import HttpFetcher, direct
from shoal.fetch.robots import RobotsBook
from shoal.frontier.protocol import Ask, Engine, Granted, Renewal
from shoal.outcome import Done, Settlement, Snoozed
from shoal.presence import introduce
from shoal.scraper import Scraper
from shoal.task import DEFAULT_POOL, DIRECT, Kind, Lease
from shoal.url import without_credentials
from shoal.work.executor import Executor
from shoal.work.held import HeldLease
from shoal.work.visit import settlement

PAGE_LANES = ("priority", "bulk")
"""What a worker works on unless told otherwise. The other lanes have workers of their own."""

LINGER = 0.004
"""Seconds that the first of a group of settlements waits for company."""

AHEAD: Millis = 20
"""How early a lease is taken, so that the way to the store and back costs nothing of the pace."""

POLL = (0.15, 0.3)
"""Seconds between two looks at a store where others may have changed something: between these, at random."""

SHORTEST_WAIT = 0.002
"""Seconds before the next look where the last one found nothing, though something was said to be due."""

SWEEP_EVERY = 2.0
LOOK_AT_LEASES_EVERY = 1.0

LAST_WORD = 5.0
"""Seconds that the store is given to take back leases when the work ends by an error or is cancelled."""

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
    """Runs in one event loop, once. `run` ends when drained or stopped; what it held then is settled or given back."""

    def __init__(
        self,
        engine: Engine,
        scrapers: Sequence[Scraper],
        options: WorkerOptions,
        *,
        clock: Clock | None = None,
        seed: int | None = None,
    ) -> None:
        for scraper in scrapers:
            if scraper.exits not in options.exits:
                raise UsageError(
                    f"The scraper {scraper.name!r} leaves by the exits {scraper.exits!r}, which this worker does not "
                    f"have; it has {', '.join(options.exits)}."
                )
        self._engine = engine
        self._scrapers = {scraper.name: scraper for scraper in scrapers}
        self._options = options
        self._clock = clock or SystemClock()
        self._chance = random.Random(seed)  # noqa: S311 - jitter, not secrets
        self._held: dict[int, HeldLease] = {}
        self._tasks: dict[int, asyncio.Task[Settlement]] = {}
        self._finished: list[Settlement] = []
        self._sending: list[Settlement] = []
        self._asked: asyncio.Future[Granted] | None = None
        self._news = asyncio.Event()
        self._stopping = False
        self._stop_by = math.inf

    def stop(self) -> None:
        """Claim nothing more; let what is in flight end, or give it back when `grace` is over. May be called twice."""
        self._stopping = True
        self._stop_by = min(self._stop_by, self._clock.elapsed() + self._options.grace * 1000)
        self._news.set()

    def abort(self) -> None:
        """Stop at once, and give back what is held without waiting for it."""
        self._stop_by = -math.inf
        self.stop()

    async def run(self) -> None:
        """Work until there is nothing to do (`drain`) or `stop` is called. Raises EngineError if the store fails.

        Cancelled, it gives back what it holds before it ends, if the store is quick about it.
        """
        options = self._options
        self._info, notebook = introduce()
        async with AsyncExitStack() as stack:
            fetcher = HttpFetcher(options.user_agent, connector=direct(limit=options.concurrency))
            stack.push_async_callback(fetcher.close)
            robots = RobotsBook(self._engine.cache, options.user_agent, clock=self._clock)
            self._executor = Executor(self._scrapers, fetcher, robots, notebook, self._clock, self._chance)
            try:
                await self._work_and_chores()
            except asyncio.CancelledError:
                await self._give_back()
                raise
            except BaseExceptionGroup as errors:
                await self._give_back()
                raise _of_the_store(errors) from None
            finally:
                if not (self._finished or self._sending or self._asked):
                    notebook.close()
                # Otherwise its leases will be found by someone who must not take this for a crash.

    async def _work_and_chores(self) -> None:
        async with asyncio.TaskGroup() as group:
            chores = [group.create_task(self._keep_sweeping()), group.create_task(self._keep_renewing())]
            await self._work(group)
            for chore in chores:
                chore.cancel()

    async def _work(self, group: asyncio.TaskGroup) -> None:
        drained = False
        while not (self._stopping or drained):
            granted = await self._exchange()
            for lease in granted.leases:
                self._begin(group, self._hold(lease, granted))
            drained = self._options.drain and not granted.left and not self._held and not self._finished
            if not drained:
                await self._wait(granted)
        await self._wind_down()

    async def _wind_down(self) -> None:
        """What has made no request yet goes back at once; the rest gets its grace, and then goes back too."""
        while self._held or self._finished:
            late = self._clock.elapsed() >= self._stop_by
            for token, task in self._tasks.items():
                if (late or not self._held[token].starts) and not task.cancelling():
                    task.cancel()
            if self._finished:
                await self._exchange()
            else:
                left = self._stop_by - self._clock.elapsed()
                await self._sleep(left / 1000 if 0 < left < math.inf else None)

    async def _give_back(self) -> None:
        """The last word where the work has ended by an error or a cancellation. The store may not hear it."""
        self._stopping = True
        try:
            async with asyncio.timeout(LAST_WORD):
                if self._asked is not None:
                    granted = await self._asked
                    self._asked, self._sending = None, []
                    self._finished += [settlement(self._hold(lease, granted), Snoozed()) for lease in granted.leases]
                if self._finished or self._sending:
                    self._finished = self._sending + self._finished
                    await self._exchange()
        except Exception as error:  # noqa: BLE001 - we end already, and with a better reason than this
            log.warning("leases could not be given back; they will run out", reason=str(error) or "no answer in time")

    # Talking to the store

    async def _exchange(self) -> Granted:
        """Settle what is finished and ask for as much as there is room for. Nothing is forgotten if it fails."""
        options = self._options
        settlements = self._sending = self._finished
        self._finished = []
        self._news.clear()
        ask = Ask(
            self._info,
            tuple(self._scrapers),
            options.lanes,
            options.exits,
            0 if self._stopping else max(0, options.concurrency - len(self._held)),
            options.queues,
            tuple(settlements),
            AHEAD,
        )
        self._sent = self._clock.elapsed()
        # Cancelled in between, we still want to know what was granted: it has to be given back.
        self._asked = asyncio.ensure_future(self._engine.frontier.exchange(ask))
        try:
            granted = await asyncio.shield(self._asked)
            self._received = self._clock.elapsed()
        except Exception:
            self._asked = None
            raise
        self._asked, self._sending = None, []
        late = set(granted.late)
        if late:
            log.warning("settlements came too late and were thrown away", count=len(late))
        for settled in settlements:
            if settled.token not in late and isinstance(settled.outcome, Done) and settled.outcome.tasks:
                self._executor.recent.add(settled.run_id, _plain_pages(settled.outcome))
        return granted

    def _hold(self, lease: Lease, granted: Granted) -> HeldLease:
        """Without a shared clock, the claim happened after the question was sent and before its answer came. Taking the
        first for it makes every start look late rather than early; the difference says how much too late at most."""
        if self._engine.shares_clock:
            return HeldLease(lease, self._clock, self._clock.now() - self._clock.elapsed())
        return HeldLease(lease, self._clock, granted.now - self._sent, self._received - self._sent)

    def _begin(self, group: asyncio.TaskGroup, held: HeldLease) -> None:
        token = held.lease.token
        self._held[token] = held
        task = self._tasks[token] = group.create_task(self._executor.execute(held))
        task.add_done_callback(lambda ended: self._end(held, ended))

    def _end(self, held: HeldLease, task: asyncio.Task[Settlement]) -> None:
        """One lease is at its end. A cancelled one goes back; its request, if any, counts for the clock of its slot.

        This is a callback because a task that is cancelled before its first step never runs at all.
        """
        del self._held[held.lease.token], self._tasks[held.lease.token]
        failed = task.cancelled() or task.exception() is not None
        self._finished.append(settlement(held, Snoozed()) if failed else task.result())
        self._news.set()

    # Waiting

    async def _wait(self, granted: Granted) -> None:
        """Until it is worth going back to the store: something to settle, something due, or time to look again."""
        if not self._finished and not self._stopping:
            seconds = self._chance.uniform(*POLL)
            if len(self._held) >= self._options.concurrency:
                seconds = SWEEP_EVERY
            elif granted.wake_at is not None:
                until_due = (granted.wake_at - granted.now - (self._clock.elapsed() - self._sent)) / 1000
                seconds = max(0.0 if granted.leases else SHORTEST_WAIT, min(until_due, seconds))
            await self._sleep(seconds)
        if self._finished and self._held and len(self._finished) * 2 < self._options.concurrency:
            await asyncio.sleep(LINGER)

    async def _sleep(self, seconds: float | None) -> None:
        """Until there is news, or so many seconds are over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()

    # Chores

    async def _keep_sweeping(self) -> None:
        while True:
            swept = await self._engine.frontier.sweep()
            if swept.returned or swept.buried:
                log.warning("brought back what lost workers held", returned=swept.returned, dead=swept.buried)
            await asyncio.sleep(0 if swept.more else SWEEP_EVERY * self._chance.uniform(0.8, 1.2))

    async def _keep_renewing(self) -> None:
        """Leases that are getting old, and those whose settlement still has not gone out since the last look."""
        unsettled: set[int] = set()
        while True:
            await asyncio.sleep(LOOK_AT_LEASES_EVERY)
            now = self._clock.elapsed()
            renewals = [
                Renewal(held.lease.task.id, token) for token, held in self._held.items() if held.renew_at <= now
            ]
            on_their_way = [*self._sending, *self._finished]
            renewals += [Renewal(ended.task, ended.token) for ended in on_their_way if ended.token in unsettled]
            unsettled = {ended.token for ended in on_their_way}
            if renewals:
                await self._renew(renewals, now)

    async def _renew(self, renewals: Sequence[Renewal], now: float) -> None:
        """Keep leases alive. Work on those that were lost is stopped: its settlement would be refused."""
        lost = set(await self._engine.frontier.renew(self._info, renewals))
        for renewal in renewals:
            held = self._held.get(renewal.token)
            if held is None:
                continue
            if renewal.token not in lost:
                held.renewed(now)
            else:
                log.warning("lease lost; its work is stopped", url=without_credentials(held.lease.task.url))
                self._tasks[renewal.token].cancel()


def _plain_pages(done: Done) -> list[str]:
    return [
        task.url
        for task in done.tasks
        if task.key is not None and task.extra.method == "GET" and task.extra.kind is Kind.PAGE
    ]


def _of_the_store(error: BaseException) -> BaseException:
    """What went wrong with the store, out of the group of tasks that it ended; anything else as it is."""
    while isinstance(error, BaseExceptionGroup):
        store = error.subgroup(EngineError)
        if store is None:
            break
        error = store.exceptions[0]
    return error

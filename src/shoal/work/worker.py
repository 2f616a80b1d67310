"""A worker: claims what it can start at once, works on it, settles in groups, and never sits on what it cannot do."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field

import structlog

from shoal.audit import KEPT, RequestRecord, stream_of, written
from shoal.clock import Clock, Millis, SystemClock, millis
from shoal.errors import EngineUnavailable, UsageError
from shoal.exits import TorOptions
from shoal.fetch.guard import Guard
from shoal.fetch.protocol import Fetcher
from shoal.fetch.robots import RobotsBook
from shoal.fetch.stored import LARGEST
from shoal.frontier.engine import Engine
from shoal.frontier.exits import NewExit
from shoal.frontier.protocol import Ask, Duties, Granted, Renewal, Swept
from shoal.kept import Note
from shoal.outcome import Done, Settlement, Snoozed
from shoal.patience import patient
from shoal.politeness import MAX_CRAWL_DELAY
from shoal.presence import introduce
from shoal.scraper import Scraper
from shoal.task import Kind, Lease
from shoal.url import without_credentials
from shoal.work.executor import Executor
from shoal.work.exit_book import DIRECTLY
from shoal.work.flights import Flights
from shoal.work.held import HeldLease
from shoal.work.memory import Memory
from shoal.work.neighbours import Neighbours
from shoal.work.permission import Permission
from shoal.work.rhythm import ahead, linger
from shoal.work.sitemaps import Finds, SitemapReading
from shoal.work.talks import LAST_WORD, Talks, Unheard, of_the_store
from shoal.work.visit import settlement
from shoal.work.ways_out import WaysOut

PAGE_LANES = ("priority", "bulk")
"""What a worker works on unless told otherwise. The other lanes have workers of their own."""

POLL = (0.15, 0.3)
"""Seconds between two looks at a store where others may have changed something: between these, at random."""

SHORTEST_WAIT = 0.002
"""Seconds before the next look where the last one found nothing, though something was said to be due."""

SWEEP_EVERY = 2.0
SWEEP_AFTER_A_DEATH = 0.05
"""Seconds, at most and at random: those who notice do not all come to the store at the same moment."""
LOOK_AT_LEASES_EVERY = 1.0

log = structlog.get_logger("shoal")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How one worker works.

    `concurrency`: requests in flight at once, over all sites. `queues`: None = all runs of its scrapers.
    `batch`: the most leases that are taken at once; None = as many as there is room for. `drain`: end when nothing is
    left to do in its lanes and queues. `grace`: seconds that requests in flight are given to end after `stop`, before
    their leases are given back. `exits`: the ways out that it was set up with, by name. `tor`: how it runs a Tor
    daemon, if one of its scrapers leaves by Tor. `audit`: every request is written to the log of its run. `guard`: what
    the tasks of web clients may connect to. `max_crawl_delay`: a longer Crawl-delay of a robots.txt is read as this.
    `revisit`: pages that are to be visited again wait for it. `cache_max_bytes`: the largest body that is kept to be
    used again.
    """

    user_agent: str
    concurrency: int = 64
    batch: int | None = None
    lanes: Sequence[str] = PAGE_LANES
    queues: Sequence[str] | None = None
    drain: bool = False
    grace: float = 10.0
    exits: Mapping[str, NewExit] = field(default_factory=lambda: DIRECTLY)
    tor: TorOptions = field(default_factory=TorOptions)
    audit: bool = True
    guard: Guard = field(default_factory=Guard)
    max_crawl_delay: Millis = MAX_CRAWL_DELAY
    revisit: bool = True
    cache_max_bytes: int = LARGEST

    def __post_init__(self) -> None:
        for name, number in (("concurrency", self.concurrency), ("batch", self.batch)):
            if number is not None and number < 1:
                raise UsageError(f"A worker's {name} must be 1 or more, not {number}.")


class Worker:
    """Runs in one event loop, once. `run` ends when drained or stopped; what it held then is settled or given back.

    `finds`: what becomes of the pages that sitemaps list; None = they become tasks.
    `around`: what stands between its tasks and the network; None = nothing.
    """

    def __init__(
        self,
        engine: Engine,
        scrapers: Sequence[Scraper],
        options: WorkerOptions,
        *,
        clock: Clock | None = None,
        seed: int | None = None,
        finds: Finds | None = None,
        around: Callable[[Fetcher], Fetcher] | None = None,
    ) -> None:
        self._engine = patient(engine)
        self._requests: dict[str, list[RequestRecord]] = {}
        self._notes: tuple[Note, ...] = ()
        self._scrapers = {scraper.name: scraper for scraper in scrapers}
        self._options = options
        self._clock = clock or SystemClock()
        self._chance = random.Random(seed)  # noqa: S311 - jitter, not secrets
        self._finds = finds
        self._around = around
        self._held: dict[int, HeldLease] = {}
        self._tasks: dict[int, asyncio.Task[Settlement]] = {}
        self._ways = WaysOut(options, scrapers, self._engine.exits, self._clock, lambda: self._held)
        self._flights = Flights(self._engine.cache, self._clock, self._chance)
        self._talks = Talks(self._engine, self._clock, self._ask, lambda: self._held)
        self._limit: asyncio.Timeout | None = None
        self._news = asyncio.Event()
        self._stopping = False
        self._over = False
        self._stop_by = math.inf

    def stop(self) -> None:
        """Claim nothing more; let what is in flight end, or give it back when `grace` is over. May be called twice."""
        self._stopping = True
        self._stop_by = min(self._stop_by, self._clock.elapsed() + self._options.grace * 1000)
        self._ways.give_up()
        self._limit_talks()
        self._news.set()

    def abort(self) -> None:
        """Stop at once, and give back what is held without waiting for it."""
        self._stop_by = -math.inf
        self.stop()

    async def run(self) -> None:
        """Work until there is nothing to do (`drain`) or `stop` is called. A store that is away is waited for; what
        else can go wrong with it is raised as EngineError.

        Cancelled, it gives back what it holds before it ends, if the store is quick about it.
        """
        options = self._options
        queues = None if options.queues is None else tuple(options.queues)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._ways.close)
            fetcher = await self._ways.open()
            self._info, notebook = introduce(Duties(tuple(self._scrapers), tuple(options.lanes), queues))
            robots = RobotsBook(self._engine.cache, options.user_agent, self._clock, options.max_crawl_delay)
            asks = Permission(fetcher, robots, self._clock, self._engine.frontier)
            sitemaps = SitemapReading(self._engine.frontier, self._finds)
            memory = Memory(self._engine.cache, self._flights, fetcher.has_cookies, options.cache_max_bytes)
            through = fetcher if self._around is None else self._around(fetcher)
            self._executor = Executor(
                self._scrapers, through, asks, notebook, self._clock, self._chance, sitemaps, memory,
                revisit=options.revisit,
            )  # fmt: skip
            try:
                await self._work_and_chores()
            except asyncio.CancelledError:
                await self._give_back()
                raise
            except BaseExceptionGroup as errors:
                error = of_the_store(errors)
                if isinstance(error, Unheard):
                    self._talks.give_up()
                    return
                await self._give_back()
                raise error from None
            finally:
                if self._talks.are_over:
                    notebook.close()
                # Otherwise its leases will be found by someone who must not take this for a crash.

    async def _work_and_chores(self) -> None:
        async with asyncio.TaskGroup() as group:
            endless = (self._keep_sweeping(), self._keep_renewing(), *self._ways.chores())
            chores = [group.create_task(chore) for chore in endless]
            await self._work(group)
            self._over = True
            for chore in chores:
                chore.cancel()

    async def _work(self, group: asyncio.TaskGroup) -> None:
        drained = False
        while not (self._stopping or drained):
            granted = await self._exchange()
            for lease in granted.leases:
                self._begin(group, self._hold(lease))
            drained = self._options.drain and not granted.left and not self._held and self._talks.are_over
            if not drained:
                await self._wait(granted)
        await self._wind_down()

    async def _wind_down(self) -> None:
        """What has made no request yet goes back at once; the rest gets its grace, and then goes back too."""
        while self._held or self._talks.unsettled:
            late = self._clock.elapsed() >= self._stop_by
            for token, task in self._tasks.items():
                if (late or not self._held[token].starts) and not task.cancelling():
                    task.cancel()
            if self._talks.unsettled:
                await self._exchange()
            else:
                left = self._stop_by - self._clock.elapsed()
                await self._sleep(left / 1000 if 0 < left < math.inf else None)

    async def _give_back(self) -> None:
        self._stopping = True
        await self._talks.last_word(
            lambda granted: [settlement(self._hold(lease), Snoozed()) for lease in granted.leases]
        )

    # Talking to the store

    async def _exchange(self) -> Granted:
        """Settle what is finished and ask for as much as there is room for. Raises Unheard if it is time to end."""
        self._news.clear()
        self._notes += tuple(Note(stream_of(run), written(made), KEPT) for run, made in self._requests.items())
        self._requests.clear()
        self._limit = limit = asyncio.timeout(None)
        try:
            async with limit:
                self._limit_talks()
                granted = await self._talks.exchange()
        except TimeoutError:
            if limit.expired():
                raise Unheard from None
            raise
        finally:
            self._limit = None
        self._notes = ()
        self._ways.settled(self._talks.stood, self._talks.unsettled)
        self._flights.land(settled.token for settled in self._talks.heard)
        for settled in self._talks.stood:
            if isinstance(settled.outcome, Done) and settled.outcome.tasks:
                self._executor.recent.add(settled.run_id, _plain_pages(settled.outcome))
        return granted

    def _limit_talks(self) -> None:
        """A store that is away is waited for until the grace is over, if there is something to tell it; one that should
        answer, a little longer."""
        if not self._stopping or self._limit is None:
            return
        left = max(0.0, self._stop_by - self._clock.elapsed()) / 1000
        if not self._engine.patience.is_away:
            left += LAST_WORD
        elif not self._held and not self._talks.unsettled:
            left = 0.0
        self._limit.reschedule(asyncio.get_running_loop().time() + left)

    def _ask(self) -> Ask:
        options = self._options
        room = 0 if self._stopping else max(0, options.concurrency - len(self._held))
        want = room if options.batch is None else min(room, options.batch)
        return Ask(
            self._info,
            tuple(self._scrapers),
            options.lanes,
            self._ways.book.pools,
            want,
            options.queues,
            ahead=ahead(self._talks.took),
            private=self._ways.book.private,
            notes=self._notes,
        )

    def _hold(self, lease: Lease) -> HeldLease:
        """Without a shared clock, the store's time is taken to be as late as it may be: so that every start looks late
        rather than early."""
        far = lease.exit in self._ways.book.far
        if self._engine.shares_clock:
            return HeldLease(lease, self._clock, self._clock.now() - self._clock.elapsed(), far=far)
        return HeldLease(lease, self._clock, self._talks.time.shift, self._talks.time.slack, far=far)

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
        if self._options.audit and held.made:
            self._write_down(held)
        failed = task.cancelled() or task.exception() is not None
        settled = settlement(held, Snoozed()) if failed else task.result()
        self._ways.ended(held, settled)
        self._talks.settle(settled)
        self._news.set()

    def _write_down(self, held: HeldLease) -> None:
        task = held.lease.task
        scraper = self._scrapers[task.scraper]
        rules = millis(scraper.site_delay), scraper.concurrency
        self._requests.setdefault(task.run_id, []).extend(
            RequestRecord(task.site, held.lease.exit, m.at, m.slack, m.took, m.status, m.delay, *rules, m.robots)
            for m in held.made
        )

    # Waiting

    async def _wait(self, granted: Granted) -> None:
        """Until it is worth going back to the store: something to settle, something due, or time to look again."""
        if not self._talks.unsettled and not self._stopping:
            seconds = self._chance.uniform(*POLL)
            if len(self._held) >= self._options.concurrency:
                seconds = SWEEP_EVERY
            elif granted.wake_at is not None:
                until_due = (granted.wake_at - granted.now - (self._clock.elapsed() - self._talks.sent)) / 1000
                seconds = max(0.0 if granted.leases else SHORTEST_WAIT, min(until_due, seconds))
            await self._sleep(seconds)
        unsettled = len(self._talks.unsettled)
        if unsettled and self._held and unsettled * 2 < self._options.concurrency:
            await asyncio.sleep(linger(self._talks.took))

    async def _sleep(self, seconds: float | None) -> None:
        """Until there is news, or so many seconds are over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()

    # Chores

    async def _keep_sweeping(self) -> None:
        """Not while the store is away, nor just after: those who could not renew their leases meanwhile come first.

        A cancellation may be swallowed on its way (`asyncio.wait_for` does so in Python 3.11 where an answer comes at
        the same moment), so it is not relied on alone.
        """
        with Neighbours() as neighbours:
            while not self._over:
                neighbours.look_around()  # before the sweep: who dies after this look ends the wait
                swept = Swept()
                if self._engine.patience.is_steady:
                    with suppress(EngineUnavailable):
                        swept = await self._engine.frontier.sweep()
                if swept.returned or swept.buried:
                    log.warning("brought back what lost workers held", returned=swept.returned, dead=swept.buried)
                if self._over:
                    break
                pause = 0 if swept.more else SWEEP_EVERY * self._chance.uniform(0.8, 1.2)
                if await neighbours.wait(pause):
                    await asyncio.sleep(SWEEP_AFTER_A_DEATH * self._chance.random())

    async def _keep_renewing(self) -> None:
        """Leases and flights that are getting old, and leases whose settlement has not gone out since the last look."""
        unsettled: set[int] = set()
        while not self._over:
            await asyncio.sleep(LOOK_AT_LEASES_EVERY)
            now = self._clock.elapsed()
            renewals = [
                Renewal(held.lease.task.id, token) for token, held in self._held.items() if held.renew_at <= now
            ]
            on_their_way = self._talks.unsettled
            renewals += [Renewal(ended.task, ended.token) for ended in on_their_way if ended.token in unsettled]
            unsettled = {ended.token for ended in on_their_way}
            if renewals:
                await self._renew(renewals, now)
            await self._flights.renew()

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

"""A worker: begins what it is handed at once, works on it, and never sits on what it cannot do.

How it gets its leases and ends them is in `shoal.delivery.lease_client`; what it does with one, in `executor`.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack

from shoal.api.scraper import Scraper
from shoal.core.clock import Clock, SystemClock
from shoal.delivery.held_lease import HeldLease
from shoal.delivery.lease_client import LeaseClient, of_the_store
from shoal.delivery.options import LeaseOptions
from shoal.delivery.supervised import supervised
from shoal.delivery.waiting import news_or_time
from shoal.errors import ShoalError
from shoal.fetch.protocol import Fetcher
from shoal.fetch.robots.cache import RobotsCache
from shoal.frontier.contract.engine import Engine
from shoal.frontier.retrying import patient
from shoal.work.connectivity import Connectivity
from shoal.work.executor import Executor
from shoal.work.exits.exit_set import ExitSet
from shoal.work.in_flight import InFlight
from shoal.work.isolation.handler_pool import HandlerPool
from shoal.work.options import WorkerOptions
from shoal.work.process.loop_watchdog import LoopWatchdog
from shoal.work.process.run_halts import RunHalts
from shoal.work.store.known_links import KnownLinks
from shoal.work.store.request_recorder import RequestRecorder
from shoal.work.store.single_flight import SingleFlight
from shoal.work.store.task_budget import TaskBudget
from shoal.work.task.attempt import Attempt
from shoal.work.task.page_history import PageHistory
from shoal.work.task.read_sitemap import Finds, SitemapReading
from shoal.work.task.robots_permission import Permission
from shoal.work.task.run_handler import HandlerRunner
from shoal.work.task.setbacks import Setbacks
from shoal.work.task.tally import Tally


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
        self._scrapers = {scraper.name: scraper for scraper in scrapers}
        self._options = options
        self._clock = clock = clock or SystemClock()
        self._chance = chance = random.Random(seed)  # noqa: S311 - jitter, not secrets
        self._finds = finds
        self._around = around
        self.tally = Tally()
        self._connectivity = Connectivity(chance, options.timing.offline_first)
        self._stopping = False
        self._stop_asked = asyncio.Event()
        self._known_links = KnownLinks()
        self._pool = HandlerPool(self._scrapers, options.isolation)
        self._halts = RunHalts(self._engine, self._scrapers, clock)
        self._single_flight = SingleFlight(self._engine.cache, clock, chance, options.timing)
        self._exits = ExitSet(options, scrapers, self._engine.exits, clock, lambda: self._leases.held)
        log = RequestRecorder(self._scrapers) if options.audit else None
        self._budget = TaskBudget(self._engine.reader)
        self._in_flight = InFlight(self._exits, self._single_flight, self._known_links, self._budget, log, clock)
        claims = LeaseOptions(
            tuple(self._scrapers), options.lanes, options.queues, options.concurrency, options.batch, options.drain,
            charge_all=False,
        )  # fmt: skip
        self._leases = LeaseClient(
            self._engine, claims,
            exits=self._exits.registry, clock=clock, seed=seed, timing=options.timing.leases, watcher=self._in_flight,
        )  # fmt: skip

    def stop(self) -> None:
        """Claim nothing more; let what is in flight end, or give it back when `grace` is over. May be called twice."""
        self._end_within(self._options.grace)

    def abort(self) -> None:
        """Stop at once, and give back what is held without waiting for it."""
        self._end_within(0.0)

    def _end_within(self, grace: float) -> None:
        self._stopping = True
        self._stop_asked.set()
        self._exits.give_up()
        self._leases.stop(grace)
        self._in_flight.end_within(grace)

    async def run(self) -> None:
        """Work until there is nothing to do (`drain`) or `stop` is called. A store that is away is waited for; what
        else can go wrong with it is raised as EngineError.

        Cancelled, it gives back what it holds before it ends, if the store is quick about it.
        """
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._exits.close)
            stack.push_async_callback(self._pool.close)
            fetcher = await self._exits.open()
            asking = fetcher if self._around is None else self._around(fetcher)
            async with self._leases as leases:
                options, clock, timing = self._options, self._clock, self._options.timing
                robots = RobotsCache(
                    self._engine.cache, options.user_agent, clock, options.max_crawl_delay,
                    timing.robots_kept_without_answer,
                )  # fmt: skip
                self._executor = Executor(
                    self._scrapers,
                    asking,
                    Permission(asking, robots, clock, self._engine.frontier, timing),
                    HandlerRunner(
                        leases.handling, self._known_links, clock, self._halts, self.tally, self._budget,
                        options.secrets, self._pool,
                    ),
                    SitemapReading(self._engine.frontier, self._budget, self._finds),
                    PageHistory(self._engine.cache, self._single_flight, fetcher.has_cookies, options.cache_max_bytes),
                    self._engine.cache,
                    Setbacks(self._engine.cache, clock, self._chance, timing, self._connectivity),
                    clock=clock, chance=self._chance, timing=timing, tally=self.tally, revisit=options.revisit,
                    max_backoff=options.max_backoff, secrets=options.secrets,
                )  # fmt: skip
                try:
                    with LoopWatchdog(self._in_flight.attempt_of, leases.charge_only, options.max_block):
                        await self._work(leases, self._executor)
                except BaseExceptionGroup as errors:
                    raise of_the_store(errors) from None

    async def _claim(self, leases: LeaseClient) -> Sequence[HeldLease]:
        """Leases; while this worker is offline, one at a time, and only when it is time to look again."""
        while (wait := self._connectivity.look_at - self._clock.elapsed()) > 0 and not self._stopping:
            await news_or_time(self._stop_asked, wait / 1000, self._clock)
        return await leases.claim(1 if self._connectivity.is_offline else None)

    async def _work(self, leases: LeaseClient, executor: Executor) -> None:
        async with asyncio.TaskGroup() as group:
            endless = {
                "single flight": self._single_flight.keep_renewing, **self._exits.chores(), **self._pausing(leases)
            }  # fmt: skip
            chores = [
                group.create_task(supervised(name, loop, self._clock, fatal=ShoalError))
                for name, loop in endless.items()
            ]
            while claimed := await self._claim(leases):
                for held in claimed:
                    self._in_flight.begin(group, Attempt(held), executor.execute, leases.settle)
            await self._in_flight.wind_down()
            for chore in chores:
                chore.cancel()

    def _pausing(self, leases: LeaseClient) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """A worker that ends with its run also ends when that is paused because its handlers are wrong."""
        queues = self._options.queues
        only = queues[0] if self._options.drain and queues is not None and len(queues) == 1 else None
        loops: dict[str, Callable[[], Awaitable[None]]] = {
            "pausing of runs": lambda: self._halts.keep_pausing(leases, only, self.stop)
        }
        if only is not None:
            loops["look for pauses"] = lambda: self._halts.keep_looking(only, self.stop)
        return loops

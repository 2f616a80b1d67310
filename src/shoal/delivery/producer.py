"""The loop that goes to the store in good time: it brings what is settled and takes what is wanted, in one exchange."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Sequence

from shoal.core.clock import Clock
from shoal.core.notes import Note
from shoal.core.outcome import Settlement, Snoozed
from shoal.core.task import Lease
from shoal.delivery.batching import ahead, linger
from shoal.delivery.exchanges import Exchanges
from shoal.delivery.held_lease import HeldLease
from shoal.delivery.options import LeaseOptions, LeaseTiming, UsableExits
from shoal.delivery.waiting import news_or_time
from shoal.delivery.watcher import LeaseWatcher
from shoal.frontier.contract.frontier import Ask, Granted, WorkerInfo
from shoal.frontier.retrying import RetryingEngine


class Producer:
    """Claims only while somebody waits for leases, so that each can be started as soon as it is granted.

    `held`: all leases that are known here and not settled, by token, those that nobody has taken yet included.
    `info`: who asks; to be set before the loop runs. `exchanges`: what is being said.
    """

    def __init__(
        self,
        engine: RetryingEngine,
        options: LeaseOptions,
        exits: UsableExits,
        clock: Clock,
        chance: random.Random,
        timing: LeaseTiming,
        watcher: LeaseWatcher,
    ) -> None:
        self._engine = engine
        self._options = options
        self._scrapers = tuple(options.scrapers)
        self._lanes = tuple(options.lanes)
        self._queues = None if options.queues is None else tuple(options.queues)
        self._exits = exits
        self._clock = clock
        self._chance = chance
        self._timing = timing
        self._watcher = watcher
        self.held: dict[int, HeldLease] = {}
        self.exchanges = Exchanges(engine, clock, self._ask, lambda: self.held, timing)
        self.info: WorkerInfo
        self._ready: deque[HeldLease] = deque()
        self._arrivals = asyncio.Event()
        self._news = asyncio.Event()
        self._heard = asyncio.Event()
        self._notes: tuple[Note, ...] = ()
        self._wanted = 0
        self._unasked = True
        self._stopped = False
        self._drained = False
        self._closing = False

    async def take(self, wanted: int, most: int) -> Sequence[HeldLease]:
        """Up to `most` leases, as soon as there are any; None at all = there will be no more. `wanted`: so many may be
        claimed for this; the others are there for whoever comes next."""
        self._wanted += wanted
        try:
            while not self._ready and not self._stopped and not self._drained:
                if self._unasked and self._room:
                    self._news.set()
                self._arrivals.clear()
                await self._arrivals.wait()
        finally:
            self._wanted -= wanted
        if self._stopped:
            return ()
        return [self._ready.popleft() for _ in range(min(most, len(self._ready)))]

    def settle(self, settlement: Settlement) -> None:
        """Goes out soon, and with others if there are."""
        self.exchanges.settle(settlement)
        self._news.set()

    def stop(self) -> None:
        """Claim nothing more. What was granted and not taken goes back. The second time: nothing."""
        self._stopped = True
        for held in self._ready:
            self._give_back(held)
        self._ready.clear()
        self._arrivals.set()
        self._news.set()
        self._tell_heard()

    async def next_exchange(self) -> None:
        """Wait until the store has answered the next time, or will not any more."""
        await self._heard.wait()

    def _tell_heard(self) -> None:
        self._heard.set()
        self._heard = asyncio.Event()

    def finish(self) -> None:
        """The loop ends when nothing is held and everything was said."""
        self._closing = True
        self.stop()

    async def keep_exchanging(self) -> None:
        """Until `finish`. Raises what a store says that is not away."""
        while True:
            if self._stopped and not self.exchanges.unsettled:
                if self._closing and not self.held:
                    return
                await news_or_time(self._news, None, self._clock)
                continue
            granted = await self._exchange()
            await asyncio.sleep(0)  # those who have got leases may want more
            await self._wait(granted)

    async def _exchange(self) -> Granted:
        """Settle what is finished and ask for as much as is wanted."""
        self._news.clear()
        self._notes += tuple(self._watcher.notes())
        granted = await self.exchanges.exchange()
        self._notes = ()
        exchanges = self.exchanges
        self._watcher.settled(exchanges.heard, exchanges.stood, exchanges.unsettled)
        self._tell_heard()
        for lease in granted.leases:
            self._hold(lease)
        if self._options.drain and self._wanted and not granted.left and not self.held and exchanges.are_over:
            self._drained = True
        if self._ready or self._drained:
            self._arrivals.set()
        return granted

    def _hold(self, lease: Lease) -> None:
        """Without a shared clock, the store's time is taken to be as late as it may be: so that every start looks late
        rather than early."""
        clock, time = self._clock, self.exchanges.time
        shared = self._engine.shares_clock
        shift, slack = (clock.now() - clock.elapsed(), 0.0) if shared else (time.shift, time.slack)
        far = lease.exit in self._exits.far
        held = HeldLease(lease, clock, shift, slack, far=far, renew_every=self._timing.renew_every)
        self.held[lease.token] = held
        if self._stopped:
            self._give_back(held)
        else:
            self._ready.append(held)

    def _give_back(self, held: HeldLease) -> None:
        del self.held[held.lease.token]
        held.is_over = True
        self.settle(held.settlement(Snoozed()))

    def _ask(self) -> Ask:
        options = self._options
        want = 0 if self._stopped else min(self._room, self._wanted)
        self._unasked = not want
        return Ask(
            self.info,
            self._scrapers,
            self._lanes,
            self._exits.pools,
            want if options.batch is None else min(want, options.batch),
            self._queues,
            ahead=ahead(self.exchanges.took),
            private=self._exits.private,
            notes=self._notes,
        )

    @property
    def _room(self) -> int:
        return max(0, self._options.concurrency - len(self.held))

    async def _wait(self, granted: Granted) -> None:
        """Until it is worth going back to the store: something to settle, something due, or time to look again."""
        if not self.exchanges.unsettled and not self._stopped:
            seconds = self._timing.idle_look
            self._unasked = self._unasked or not self._wanted
            if self._wanted and self._room:
                seconds = self._chance.uniform(*self._timing.poll)
                if granted.wake_at is not None:
                    until_due = (granted.wake_at - granted.now - (self._clock.elapsed() - self.exchanges.sent)) / 1000
                    seconds = max(0.0 if granted.leases else self._timing.shortest_wait, min(until_due, seconds))
            await news_or_time(self._news, seconds, self._clock)
        unsettled = len(self.exchanges.unsettled)
        if unsettled and self.held and unsettled * 2 < self._options.concurrency:
            await self._clock.sleep(linger(self.exchanges.took))

"""How a worker of any kind gets its leases and ends them: claim, settle, give back, close.

The life of a lease here, from the grant to the last that is heard of it:

| state | how it comes there | what may be done with it |
| --- | --- | --- |
| granted | the store has answered a claim | nothing: it is handed out at once, or goes back if `stop` was called |
| held | `claim` has handed it out | its requests, one outcome; it is renewed for as long as it takes |
| lost | the store says that it no longer lives: its run was cancelled, or this process was cut off for too long | no \
request starts any more; give it back |
| settled | `settle` or `give_back`, or `close` for what is held then | nothing: a second end is refused |
| heard | the store has answered: it stood, or it came too late and was thrown away | nothing |

A store that is away is waited for, with growing pauses: nobody who claims or settles sees more of it than that it takes
long. An answer that was lost is no grant lost: the store is told what is held, and grants the rest anew.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from types import TracebackType
from typing import Self

from shoal.core.clock import Clock, SystemClock
from shoal.core.outcome import Dropped, Outcome, Settlement, Snoozed
from shoal.delivery.held_lease import HeldLease
from shoal.delivery.options import FixedExits, LeaseOptions, LeaseTiming, UsableExits
from shoal.delivery.producer import Producer
from shoal.delivery.renewal import LeaseRenewals
from shoal.delivery.storable_outcome import storable_outcome
from shoal.delivery.supervised import supervised
from shoal.delivery.sweeping import Sweeping
from shoal.delivery.watcher import LeaseWatcher
from shoal.errors import EngineError, UsageError
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Duties
from shoal.frontier.retrying import patient
from shoal.frontier.shared.liveness import Notebook, introduce

DIRECTLY = FixedExits()


class LeaseClient:
    """Leases of one store for one process. Open within an `async with` block, once; the engine stays the caller's.

        async with LeaseClient(engine, LeaseOptions(["books"], drain=True)) as leases:
            async for lease in leases:
                async with lease.request():
                    body = await fetch(lease.task.url)
                leases.settle(lease, Done(items=(...,)))

    It may be used by any number of tasks of its event loop. What the store says that will not pass by waiting
    (EngineError) is raised by whoever claims, and by `close`.

    `exits`: the names of the exits that requests leave by, for each pool; they may change from claim to claim.
    `seed`: of the chance that spreads its questions. `watcher`: is told what happens to its leases.
    """

    def __init__(
        self,
        engine: Engine,
        options: LeaseOptions,
        *,
        exits: UsableExits | Mapping[str, Sequence[str]] = DIRECTLY,
        clock: Clock | None = None,
        seed: int | None = None,
        timing: LeaseTiming | None = None,
        watcher: LeaseWatcher | None = None,
    ) -> None:
        self._engine = patient(engine)
        self._options = options
        self._clock = clock or SystemClock()
        self._timing = timing = timing or LeaseTiming()
        self._watcher = watcher = watcher or LeaseWatcher()
        chance = random.Random(seed)  # noqa: S311 - jitter, not secrets
        known = FixedExits(exits) if isinstance(exits, Mapping) else exits
        self._producer = Producer(self._engine, options, known, self._clock, chance, timing, watcher)
        self._renewals = LeaseRenewals(self._engine.frontier, self._producer, self._clock, timing, watcher)
        self._sweeping = Sweeping(self._engine, self._clock, chance, timing)
        self._notebook: Notebook | None = None
        self._noted: dict[int, ExitStack] = {}
        self._running: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._over = False
        self._closed = False
        self._stop_by = math.inf

    async def __aenter__(self) -> Self:
        if self._notebook is not None:
            raise UsageError("A lease client is opened once. Make another one.")
        options = self._options
        queues = None if options.queues is None else tuple(options.queues)
        self._producer.info, self._notebook = introduce(Duties(tuple(options.scrapers), tuple(options.lanes), queues))
        self._producer.exchanges.handling = self._notebook.holding
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.close()
            return
        with suppress(EngineError):  # the block ends already, and with a better reason than this
            await self.close(hurry=True)

    # Leases

    @property
    def held(self) -> Mapping[int, HeldLease]:
        """What has been granted and not been settled, by token."""
        return self._producer.held

    async def claim(self, most: int | None = None) -> Sequence[HeldLease]:
        """Leases that may be started at once or in a moment, as soon as there are any; so many, or as many as there is
        room for below `concurrency`. None of them = there will be no more: drained, stopped or closed.

        Raises EngineError if the store has failed. Cancelled, it loses nothing: what was granted is for the next claim.
        """
        wanted = self._options.concurrency if most is None else most
        return await self._take(wanted, wanted)

    async def _take(self, wanted: int, most: int) -> Sequence[HeldLease]:
        leases = await self._producer.take(wanted, most)
        if not leases and self._failure is not None:
            raise self._failure
        if self._options.charge_all:
            for held in leases:
                self._noted[held.lease.token] = noted = ExitStack()
                noted.enter_context(self.handling(held))
        return leases

    def __aiter__(self) -> Self:
        """One lease after the other, until there will be no more. While `concurrency` are held, it waits."""
        return self

    async def __anext__(self) -> HeldLease:
        for held in await self._take(self._options.concurrency, 1):
            return held
        raise StopAsyncIteration

    def settle(self, lease: HeldLease, how: Outcome | Settlement) -> None:
        """End a lease. It goes to the store with the next exchange, together with others; `flush` waits for that.

        `how`: its outcome; or a whole settlement (`lease.settlement(outcome, crawl_delay=…)`), where more was learned
        or no request was needed. Raises UsageError if it was settled before, if the outcome holds what no store can,
        and if no request was started although it speaks of one: the clock of its site would not know of it.
        """
        token = lease.lease.token
        if self._producer.held.get(token) is not lease:
            raise UsageError("This lease has been settled or given back already, or it is of another client.")
        if not isinstance(how, Settlement):
            if not lease.starts and not isinstance(how, Snoozed | Dropped):
                raise UsageError(
                    "No request was started under this lease: send within `async with lease.request()`, or call "
                    "`lease.start()` at the moment of sending. If none was needed, settle with "
                    "`lease.settlement(outcome)`."
                )
            how = lease.settlement(storable_outcome(how))
        del self._producer.held[token]
        lease.is_over = True
        if noted := self._noted.pop(token, None):
            noted.close()
        self._producer.settle(how)

    def give_back(self, lease: HeldLease) -> None:
        """The task waits again, at its old place and at no cost. A request that was started counts for the pace."""
        self.settle(lease, lease.settlement(Snoozed()))

    def handling(self, lease: HeldLease) -> AbstractContextManager[None]:
        """While the block runs, a sudden death of this process is a crash of this lease's task."""
        if self._notebook is None:
            raise UsageError("The lease client is not open: use it within `async with`.")
        return self._notebook.holding(lease.lease.task.id)

    def charge_only(self, lease: HeldLease) -> None:
        """This process is about to die, and this lease's task is the cause: a crash of it, and of no other."""
        if self._notebook is not None:
            self._notebook.charge_only(lease.lease.task.id)

    async def flush(self) -> None:
        """Wait until the store has heard of everything that was settled before. Raises EngineError if it cannot."""
        waiting = {settlement.token for settlement in self._producer.exchanges.unsettled}
        while waiting & {settlement.token for settlement in self._producer.exchanges.unsettled}:
            if self._failure is not None:
                raise self._failure
            await self._producer.next_exchange()

    # The end

    def stop(self, grace: float = 0.0) -> None:
        """Claim nothing more: all claims answer that there are no more. What is held is held until it is settled.

        `grace`: seconds from now that a store which is away is waited for at the end. The earliest of several counts.
        """
        self._stop_by = min(self._stop_by, self._clock.elapsed() + grace * 1000)
        self._producer.stop()

    async def close(self, *, hurry: bool = False) -> None:
        """Give back what is held, and end when the store has heard of everything, or has not in time: a store that is
        away is waited for as long as `stop` has said, one that answers a little longer. Leases that it has not heard of
        run out, and are no crashes.

        `hurry`: a store that is away is not waited for. The second time: nothing. Raises EngineError if it has failed.
        """
        if self._closed or self._running is None or self._notebook is None:
            self._closed = True
            self._producer.stop()
            return
        self._closed = True
        if math.isinf(self._stop_by) and self._stop_by > 0:
            self.stop(self._timing.last_word)
        self._producer.stop()
        for lease in list(self._producer.held.values()):
            self.give_back(lease)
        self._producer.finish()
        try:
            await self._end(self._running, hurry=hurry)
        finally:
            self._running.cancel()
            if self._producer.exchanges.are_over:
                self._notebook.close()
            # Otherwise its leases will be found by someone who must not take this for a crash.
        if self._failure is not None:
            raise self._failure

    async def _end(self, running: asyncio.Task[None], *, hurry: bool) -> None:
        exchanges, last_word = self._producer.exchanges, self._timing.last_word
        is_away = self._engine.patience.is_away
        left = 0.0 if hurry else max(0.0, self._stop_by - self._clock.elapsed()) / 1000
        if not is_away:
            left += last_word
        elif not exchanges.unsettled:
            left = 0.0
        saying = running if self._failure is None else asyncio.ensure_future(self._say_again())
        alarm = asyncio.ensure_future(self._clock.sleep(left))
        try:
            await asyncio.wait((saying, alarm), return_when=asyncio.FIRST_COMPLETED)
        finally:
            alarm.cancel()
            self._over = True
            saying.cancel()
            exchanges.give_up(str(self._failure or ""))
            await asyncio.wait((saying,))

    async def _say_again(self) -> None:
        """The loop has ended by an error: what is left is said once more. The store may not hear it."""
        with suppress(EngineError):
            if not self._producer.exchanges.are_over:
                await self._producer.exchanges.exchange_once()

    # In the background

    async def _run(self) -> None:
        """Goes to the store, renews and sweeps, until everything was said."""
        try:
            async with asyncio.TaskGroup() as group:
                loops = {"lease renewal": lambda: self._renewals.keep_renewing(self._is_over)}
                if self._options.sweep:
                    loops["sweep"] = lambda: self._sweeping.keep_sweeping(self._is_over)
                chores = [group.create_task(self._supervised(name, loop)) for name, loop in loops.items()]
                await self._supervised("exchange", self._producer.keep_exchanging)
                self._over = True
                for chore in chores:
                    chore.cancel()
        except BaseExceptionGroup as errors:
            self._failure = failure = of_the_store(errors)
            self._watcher.failed(failure)
        finally:
            self._over = True
            self._producer.stop()

    async def _supervised(self, name: str, loop: Callable[[], Awaitable[None]]) -> None:
        """What the store says that will not pass by waiting ends the client; a mistake of ours does not."""
        await supervised(name, loop, self._clock, fatal=EngineError)

    def _is_over(self) -> bool:
        return self._over


def of_the_store(error: BaseException) -> BaseException:
    """What went wrong with the store, out of the group of tasks that it ended; anything else as it is."""
    while isinstance(error, BaseExceptionGroup):
        store = error.subgroup(EngineError)
        if store is None:
            break
        error = store.exceptions[0]
    return error

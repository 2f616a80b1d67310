"""The loop that keeps leases alive for as long as they are held."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from shoal.core import log_events
from shoal.core.clock import Clock
from shoal.core.url import without_credentials
from shoal.delivery.options import LeaseTiming
from shoal.delivery.producer import Producer
from shoal.delivery.watcher import LeaseWatcher
from shoal.frontier.contract.frontier import Frontier, Renewal

log = structlog.get_logger("shoal")


class LeaseRenewals:
    """Renews leases that are getting old, and those whose settlement has not gone out since the last look."""

    def __init__(
        self, frontier: Frontier, producer: Producer, clock: Clock, timing: LeaseTiming, watcher: LeaseWatcher
    ) -> None:
        self._frontier = frontier
        self._producer = producer
        self._clock = clock
        self._every = timing.look_at_leases_every
        self._watcher = watcher

    async def keep_renewing(self, is_over: Callable[[], bool]) -> None:
        """Until it is over, or cancelled (a cancellation may be swallowed on its way: see `keep_sweeping`)."""
        unsettled: set[int] = set()
        while not is_over():
            await self._clock.sleep(self._every)
            now = self._clock.elapsed()
            renewals = [
                Renewal(held.lease.task.id, token)
                for token, held in self._producer.held.items()
                if held.renew_at <= now and not held.is_over
            ]
            on_their_way = self._producer.exchanges.unsettled
            renewals += [Renewal(ended.task, ended.token) for ended in on_their_way if ended.token in unsettled]
            unsettled = {ended.token for ended in on_their_way}
            if renewals:
                await self._renew(renewals, now)

    async def _renew(self, renewals: Sequence[Renewal], now: float) -> None:
        """Keep leases alive. Work on those that were lost is stopped: its settlement would be refused."""
        lost = set(await self._frontier.renew(self._producer.info, renewals))
        for renewal in renewals:
            held = self._producer.held.get(renewal.token)
            if held is None:
                continue
            if renewal.token not in lost:
                held.renewed(now)
            else:
                log.warning(log_events.LEASE_LOST, url=without_credentials(held.lease.task.url))
                held.is_over = True
                self._watcher.lost(held)

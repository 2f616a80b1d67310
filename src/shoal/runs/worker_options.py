"""From settings to the options of a worker: for all who start one, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.config.pools import pools_from, tor_from
from shoal.config.secret_key import secret_box
from shoal.core.clock import millis
from shoal.core.lanes import PAGE_LANES
from shoal.fetch.guard.rules import Guard
from shoal.work.options import IsolationOptions, WorkerOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shoal.config.settings import Settings
    from shoal.frontier.contract.exits import NewExit


def worker_options(
    settings: Settings,
    *,
    lanes: Sequence[str] = PAGE_LANES,
    queues: Sequence[str] | None = None,
    exits: Mapping[str, NewExit] | None = None,
    batch: int | None = None,
    drain: bool = False,
    revisit: bool = True,
) -> WorkerOptions:
    """How a worker works with these settings. What is given here is one worker's own: see WorkerOptions.

    `exits`: None = all pools of the settings. Raises BadSettings if a pool of exits cannot be read.
    """
    return WorkerOptions(
        user_agent=settings.agent,
        concurrency=settings.concurrency,
        batch=batch,
        lanes=lanes,
        queues=queues,
        drain=drain,
        exits=pools_from(settings) if exits is None else exits,
        tor=tor_from(settings),
        audit=settings.audit,
        guard=Guard(settings.guard.networks),
        max_crawl_delay=millis(settings.max_crawl_delay),
        max_backoff=millis(settings.max_backoff),
        revisit=revisit,
        cache_max_bytes=settings.cache_max_bytes,
        secrets=secret_box(settings),
        isolation=IsolationOptions(settings.guard.isolate, settings.handler_timeout, settings.handler_memory),
        max_block=settings.max_block,
    )

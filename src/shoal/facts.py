"""Runs, workers and scrapers as plain dictionaries: what `--json` prints and what the Orchestrator answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from shoal.clock import iso
from shoal.url import without_credentials

if TYPE_CHECKING:
    from shoal.frontier.protocol import Run
    from shoal.frontier.reading import WorkerRecord
    from shoal.scraper import Scraper

_MONITORED = {"waiting": "pending", "leased": "claimed", "done": "completed", "dead": "failed"}
"""Counts under the names that monitoring expects of a queue."""


def of_run(run: Run) -> dict[str, Any]:
    """Where a run stands, with every count."""
    counts = {_MONITORED.get(name, name): number for name, number in msgspec.structs.asdict(run.counters).items()}
    return {
        "run_id": run.run_id,
        "scraper": run.scraper,
        "mode": run.mode,
        "state": run.state.value,
        "created_at": iso(run.created_at),
        "ended_at": iso(run.ended_at),
        "remaining": run.counters.remaining,
        **counts,
        "lanes": run.lanes,
        "move": None if run.move is None else {"state": run.move.state.value, "other": run.move.other},
    }


def of_scraper(scraper: Scraper) -> dict[str, Any]:
    """How a scraper would run as it is now, settings included if they were laid over it."""
    return {
        "name": scraper.name,
        "mode": scraper.mode,
        "delay": scraper.delay,
        "site_delay": scraper.site_delay,
        "concurrency": scraper.concurrency,
        "retries": scraper.retries,
        "timeout": scraper.timeout,
        "obey_robots": scraper.obey_robots,
        "cache": scraper.cache,
        "every": scraper.every,
        "lane": scraper.lane,
        "max_depth": scraper.max_depth,
        "handlers": sorted(label or "" for label in scraper.handlers),
        "input": scraper.input.model_json_schema() if scraper.input else None,
    }


def of_worker(record: WorkerRecord, state: str) -> dict[str, Any]:
    """A worker: who it is, when it was last heard of, what it takes on, and some of what it has in hand."""
    info = record.info
    return {
        "worker_id": info.worker_id,
        "machine": info.machine.partition("/")[0],
        "pid": info.pid,
        "state": state,
        "seen_at": iso(record.seen_at),
        "silent": record.silent / 1000,
        "leases": record.leases,
        "scrapers": list(info.duties.scrapers),
        "lanes": list(info.duties.lanes),
        "queues": None if info.duties.queues is None else list(info.duties.queues),
        "tasks": [
            {"run_id": task.run_id, "lane": task.lane, "url": without_credentials(task.url)} for task in record.tasks
        ],
    }

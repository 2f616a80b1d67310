"""How one gateway process behaves. Made from the settings `[serve]`."""

from __future__ import annotations

from dataclasses import dataclass, field

from shoal.core.clock import Millis
from shoal.core.version import __version__
from shoal.fetch.guard.rules import Guard
from shoal.work.options import WorkerOptions


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """Times in seconds unless said otherwise; the settings of the same names say what they mean."""

    results_ttl: float = 3600.0
    remember: Millis = 24 * 3_600_000
    max_body: int = 1024 * 1024
    max_tasks: int = 10_000
    deadline: float = 86400.0
    start_timeout: float = 10.0
    max_wait: float = 60.0
    max_waiting: int = 20_000
    """Clients that one process lets wait for news at once. More are answered at once, and told to poll."""
    max_queue: int = 100_000
    """Jobs of one scraper that have not ended; more are turned away."""
    max_inline: int = 10_000
    """Items that an answer holds at most; of more, the answer says where they are."""
    max_answer: int = 1024 * 1024
    """Bytes of items that an answer holds, about; of more, it says where they are, or how to go on. A single page of a
    site may have brought more than that."""
    max_submissions: int = 5000
    """Submissions of one process that wait for their transaction. More are turned away: they could not be answered in
    time."""
    commit_at_once: int = 256
    """Jobs that share a transaction at most."""
    store_patience: float = 0.9
    """By when the store must have answered, so that clients hear within a second that it does not."""
    cors: tuple[str, ...] = field(default=())
    hosts: tuple[str, ...] = field(default=())
    """Names of this gateway, where it asks for no keys."""
    worker: WorkerOptions = field(default_factory=lambda: WorkerOptions(f"Shoal/{__version__}"))
    """How workers work here; the one that delivers webhooks is made of it."""
    webhook_attempts: int = 30
    guard: Guard = field(default_factory=Guard)
    """What clients may have fetched. Workers ask their own again, about the addresses that they connect to."""
    static: str | None = None
    """A folder with files for browsers."""

"""How one worker works, and how often it does what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shoal.core.clock import Millis
from shoal.core.exit_address import TorOptions
from shoal.core.lanes import PAGE_LANES
from shoal.core.politeness import BACKOFF_FIRST, MAX_BACKOFF, MAX_CRAWL_DELAY, OFFLINE_FIRST, OUTAGE_FIRST, RETRY_FIRST
from shoal.core.secrets.box import NoKeys, SecretBox
from shoal.delivery.options import LeaseTiming
from shoal.errors import UsageError
from shoal.fetch.guard.rules import Guard
from shoal.fetch.robots.cache import KEPT_WITHOUT_ANSWER
from shoal.fetch.stored_answer import LARGEST
from shoal.frontier.contract.exits import NewExit
from shoal.work.exits.exit_registry import DIRECTLY


@dataclass(frozen=True, slots=True)
class WorkTiming:
    """How often, and for how long. The defaults suit every store and site; tests take others."""

    leases: LeaseTiming = field(default_factory=LeaseTiming)
    retry_first: Millis = RETRY_FIRST
    """Before the second attempt of a task; doubling after that."""
    backoff_first: Millis = BACKOFF_FIRST
    """After a rate limit that does not say how long; doubling after that."""
    outage_first: Millis = OUTAGE_FIRST
    """After a site was first found to be down; doubling after that."""
    offline_first: Millis = OFFLINE_FIRST
    """After this worker was first found to be offline; doubling after that."""
    robots_meanwhile: Millis = 5000
    """How long a site waits before it looks again whether its robots.txt has come from another site."""
    robots_kept_without_answer: Millis = KEPT_WITHOUT_ANSWER
    """How long nothing is fetched after a robots.txt could not be had, before it is asked for again."""
    robots_retry: Millis = KEPT_WITHOUT_ANSWER
    """How long the tasks wait that could not be fetched because of that."""
    flight_margin: Millis = 5000
    """How much longer than its request may take a flight is taken to last, unless it is held for longer."""
    flight_look_again: tuple[float, float] = (0.15, 0.3)
    """Seconds between two looks whether the flight of another process has ended: between these, at random."""
    flights_renewed_every: float = 1.0
    """Seconds between two looks whether a flight of this worker has to be held for longer."""
    look_at_exits_every: float = 5.0
    """Seconds between two looks whether exits were put into the store or taken from it."""


@dataclass(frozen=True, slots=True)
class IsolationOptions:
    """How handlers run in processes of their own. `jobs`: those that read pages for web clients do, whatever their
    scraper says. `timeout`: seconds for one page. `memory`: bytes that pages may take in each process."""

    jobs: bool = True
    timeout: float = 30.0
    memory: int = 512 * 2**20


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How one worker works.

    `concurrency`: requests in flight at once, over all sites. `queues`: None = all runs of its scrapers.
    `batch`: the most leases that are taken at once; None = as many as there is room for. `drain`: end when nothing is
    left to do in its lanes and queues. `grace`: seconds that requests in flight are given to end after `stop`, before
    their leases are given back. `exits`: those that it was set up with, by name. `tor`: how it runs a Tor
    daemon, if one of its scrapers leaves by Tor. `audit`: every request is written to the log of its run. `guard`: what
    the tasks of web clients may connect to. `max_crawl_delay`: a longer Crawl-delay of a robots.txt is read as this;
    `max_backoff`: a longer Retry-After.
    `revisit`: pages that are to be visited again wait for it. `cache_max_bytes`: the largest body that is kept to be
    used again. `isolation`: handlers in processes of their own. `max_block`: seconds that a handler may hold the event
    loop before it is stopped; 0 = as long as it likes. `secrets`: opens what is sealed in the
    store. `timing`: for tests.
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
    max_backoff: Millis = MAX_BACKOFF
    revisit: bool = True
    cache_max_bytes: int = LARGEST
    isolation: IsolationOptions = field(default_factory=IsolationOptions)
    max_block: float = 10.0
    timing: WorkTiming = field(default_factory=WorkTiming)
    secrets: SecretBox = field(default_factory=NoKeys)

    def __post_init__(self) -> None:
        for name, number in (("concurrency", self.concurrency), ("batch", self.batch)):
            if number is not None and number < 1:
                raise UsageError(f"A worker's {name} must be 1 or more, not {number}.")

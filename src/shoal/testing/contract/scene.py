"""A small stage for the tests of the contract: runs, pages, workers and settlements in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from shoal.core.clock import Millis, Moment
from shoal.core.notes import Note
from shoal.core.outcome import Blame, Dead, Done, Dropped, Outcome, Reason, Retried, Settlement, Snoozed
from shoal.core.task import DEFAULT_POOL, DIRECT, Lease, NewTask, Policy
from shoal.frontier.contract.frontier import Ask, Counters, Enqueued, Frontier, Granted, NewRun, Run, WorkerInfo
from shoal.frontier.contract.jobs import Store
from shoal.frontier.contract.reader import Item, Reader
from shoal.testing.contract.harness import Harness

SHOP = "shop"
LANES = ("priority", "bulk", "files")
REASON = Reason(Blame.URL, "404 Not Found")
LIMITED = Reason(Blame.HOST, "rate limited (HTTP 429)")


def page(name: str, **options: Any) -> NewTask:
    """A task for `https://{name}`: the site is what stands before the first slash, the key is made of the whole."""
    site = options.pop("site", name.partition("/")[0])
    key = options.pop("key", sha256(name.encode()).digest())
    return NewTask(f"https://{name}", site, key, **options)


def pages(site: str, number: int, **options: Any) -> list[NewTask]:
    """Pages 0, 1, 2… of one site."""
    return [page(f"{site}/{position}", **options) for position in range(number)]


def worker(name: str = "w1") -> WorkerInfo:
    """A worker of another machine: whether it lives cannot be told from here."""
    return WorkerInfo(name, "another machine", 1, 1)


def settle(lease: Lease, outcome: Outcome, *, started: Moment | None = None, **more: Any) -> Settlement:
    """The end of a lease. `started`: None = no request was made."""
    return Settlement(lease.task.run_id, lease.task.id, lease.token, outcome, started, **more)


def done(lease: Lease, *items: bytes, tasks: Sequence[NewTask] = (), group: str | None = None) -> Settlement:
    """Done, with one request that started at the moment of the claim."""
    outcome = Done(items, tuple(tasks), lease.task.url, group)
    return settle(lease, outcome, started=lease.claimed_at, requests=1)


def given_back(lease: Lease) -> Settlement:
    """The lease goes back: no request was made."""
    return settle(lease, Snoozed())


def retried(lease: Lease, wait: Millis = 0) -> Settlement:
    """A failure of the URL, to be tried again."""
    return settle(lease, Retried(wait, REASON), started=lease.claimed_at, requests=1)


def snoozed(lease: Lease, wait: Millis, penalty: int = 1, aside: Millis = 0) -> Settlement:
    """A rate limit."""
    return settle(lease, Snoozed(wait, penalty, LIMITED, aside=aside), started=lease.claimed_at, requests=1)


def exit_failed(lease: Lease) -> Settlement:
    """The exit failed before the target saw anything: the task goes back, unharmed."""
    return settle(lease, Snoozed(reason=Reason(Blame.EXIT, "refused")), exits_failed=(lease.exit,))


def dead(lease: Lease, reason: Reason = REASON) -> Settlement:
    """A failure for good."""
    return settle(lease, Dead(reason), started=lease.claimed_at, requests=1)


def dropped(lease: Lease) -> Settlement:
    """Not wanted."""
    return settle(lease, Dropped(REASON), started=lease.claimed_at, requests=1)


def names(leases: Sequence[Lease]) -> list[str]:
    """The pages that were handed out, as `page` names them."""
    return [lease.task.url.removeprefix("https://") for lease in leases]


class Scene:
    """One engine with its harness, and the verbs with defaults that suit a test."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness

    @property
    def engine(self) -> Store:
        return self.harness.engine

    @property
    def frontier(self) -> Frontier:
        return self.engine.frontier

    @property
    def reader(self) -> Reader:
        return self.engine.reader

    async def advance(self, ms: Millis) -> None:
        await self.harness.advance(ms)

    async def advance_to(self, moment: Moment) -> None:
        await self.advance(max(0, moment - await self.now()))

    async def now(self) -> Moment:
        return (await self.exchange(want=0)).now

    async def open_run(
        self, run_id: str = "run", *, queue: str | None = None, scraper: str = SHOP, **rules: Any
    ) -> Run:
        """A run whose delay is 1,000 ms unless said otherwise."""
        return await self.frontier.create_run(NewRun(run_id, scraper, Policy(**rules), queue=queue))

    async def put(self, *tasks: NewTask | str, run: str = "run") -> Enqueued:
        return await self.frontier.enqueue(run, [page(task) if isinstance(task, str) else task for task in tasks])

    def ask(
        self,
        *settlements: Settlement,
        want: int = 1,
        by: str = "w1",
        lanes: Sequence[str] = LANES,
        exits: Sequence[str] | Mapping[str, Sequence[str]] = (DIRECT,),
        scrapers: Sequence[str] = (SHOP,),
        queues: Sequence[str] | None = None,
        held: Sequence[int] | None = None,
        private: bool = False,
        notes: Sequence[Note] = (),
    ) -> Ask:
        """One round trip. `exits`: those of the default pool, or of several by name; `private`: all are own."""
        pools = exits if isinstance(exits, Mapping) else {DEFAULT_POOL: exits}
        own = tuple(pools) if private else ()
        return Ask(worker(by), scrapers, lanes, pools, want, queues, settlements, held=held, private=own, notes=notes)

    async def exchange(self, *settlements: Settlement, **options: Any) -> Granted:
        return await self.frontier.exchange(self.ask(*settlements, **options))

    async def claim(self, want: int = 1, **options: Any) -> Sequence[Lease]:
        return (await self.exchange(want=want, **options)).leases

    async def claim_one(self, **options: Any) -> Lease:
        """The one lease that must be there."""
        leases = await self.claim(1, **options)
        assert len(leases) == 1, "a task was due, and none was handed out"
        return leases[0]

    async def settle(self, *settlements: Settlement) -> Granted:
        return await self.exchange(*settlements, want=0)

    async def counters(self, run: str = "run") -> Counters:
        return (await self.reader.run(run)).counters

    async def items(self, run: str = "run", limit: int = 1000) -> list[Item]:
        """All items of a run, page by page."""
        found: list[Item] = []
        cursor: int | None = 0
        while cursor is not None:
            part = await self.reader.items(run, cursor, limit)
            found.extend(part.items)
            cursor = part.cursor
        return found

    async def bodies(self, run: str = "run", limit: int = 1000) -> list[bytes]:
        return [bytes(item.body) for item in await self.items(run, limit)]

    async def sweep_all(self) -> None:
        """Sweep until nothing more is to be done now."""
        for _ in range(1000):
            if not (await self.frontier.sweep()).more:
                return
        raise AssertionError("sweep answers `more` without end")

    async def drain(self, **options: Any) -> list[Lease]:
        """Claim and finish everything that waits, from one wake-up to the next. Answers what was handed out."""
        handed_out: list[Lease] = []
        leases: Sequence[Lease] = ()
        for _ in range(2_000):
            granted = await self.exchange(*(done(lease) for lease in leases), want=50, **options)
            leases = granted.leases
            handed_out.extend(leases)
            if leases:
                continue
            if granted.wake_at is None:
                return handed_out
            await self.advance(max(1, granted.wake_at - granted.now))
            await self.sweep_all()
        raise AssertionError("the frontier does not come to rest: tasks are announced and never handed out")

    async def check_books(self) -> None:
        """I7: what the counters of each run say is what can be found by looking (nothing may have been purged)."""
        granted = await self.exchange(want=0)
        remaining = 0
        for run in await self.reader.runs():
            counts = run.counters
            assert min(_values(counts)) >= 0, counts
            assert counts.items == len(await self.items(run.run_id)), "counted items are not the stored ones"
            assert counts.dead == await self._dead_letters(run.run_id), "counted dead letters are not the stored ones"
            remaining += counts.remaining
        assert granted.left == remaining, "what is left in the lanes is not what the runs count as remaining"

    async def _dead_letters(self, run: str) -> int:
        number, after = 0, 0
        while letters := await self.reader.dead(run, after, limit=7):
            number += len(letters)
            after = letters[-1].task
        return number


def _values(counts: Counters) -> list[int]:
    return [getattr(counts, name) for name in counts.__struct_fields__]

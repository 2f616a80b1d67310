"""Stores of every kind with a run in the middle of its life, and processes that are killed while they move it."""

from __future__ import annotations

import atexit
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, cast

import msgspec

from servers.postgres_stage import emptied_store
from servers.redis import RedisServer, running_redis
from servers.redis_stage import Stage, own_store
from shoal.core.outcome import Blame, Done, Reason, Settlement
from shoal.core.task import Extra, Kind, LanePolicy, Lease, Policy, RunState
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.open import open_engine
from shoal.runs.relocate import Journey, Moved, Place
from shoal.testing.contract.scene import (
    SHOP,
    Scene,
    dead,
    done,
    given_back,
    page,
    pages,
    retried,
    settle,
    snoozed,
)
from shoal.testing.jump_clock import JumpClock

KINDS = ("sqlite", "postgres", "redis", "redis in partitions")
PAIRS = (
    ("sqlite", "postgres"),
    ("postgres", "redis in partitions"),
    ("redis", "sqlite"),
    ("redis in partitions", "redis"),
)
HOURS = 3_600_000
TOLERANCE = 200
"""Milliseconds by which a clock may be taken for later: two round trips to servers on this machine."""

POLICY = Policy(delay=1000, results_ttl=HOURS, lanes={"files": LanePolicy(ttl=9 * HOURS)})
EXTRA = Extra(
    data={"a": [1, None, "ü"]}, group="g", method="POST", headers={"x": "y"}, body=b"\x00\xff", kind=Kind.FILE
)


class Stores:
    """Stores of every kind, each on a clock of its own, which differ by hours."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._count = itertools.count(1)

    async def new(self, kind: str) -> Scene:
        number = next(self._count)
        clock = JumpClock()
        if kind != "sqlite":  # all files are on the clock of one machine
            clock.advance(number * 5 * HOURS + 137)
        engine = await open_engine(await self._url(kind, number), clock=clock)
        self._stack.push_async_callback(engine.close)
        return Scene(Stage(engine, clock))

    async def _url(self, kind: str, number: int) -> str:
        match kind:
            case "sqlite":
                return f"sqlite:///{self._folder}/{number}.db"
            case "postgres":
                return await self._stack.enter_async_context(emptied_store())
            case "redis":
                return own_store(shared_redis())
            case _:
                return own_store(shared_redis(), partitions=3)


@cache
def shared_redis() -> RedisServer:
    """One server for all tests of this process that do not hurt it. It goes when the process ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(running_redis("--appendfsync", "no"))


@asynccontextmanager
async def opened_stores(folder: Path) -> AsyncIterator[Stores]:
    """A place for stores, which are closed at the end."""
    async with AsyncExitStack() as stack:
        yield Stores(folder, stack)


def journey(source: Scene, target: Scene, wait: int = 0) -> Journey:
    """From one to the other."""
    places = (Place(source.engine, "old://store"), Place(target.engine, "new://store"))
    return Journey("run", *places, wait, lambda _: None)


async def move(source: Scene, target: Scene) -> Moved:
    moved = await journey(source, target).make()
    assert moved is not None
    return moved


async def fill(scene: Scene, queue: str | None = None) -> None:
    """A run in the middle of its life, with something of everything."""
    await scene.frontier.create_run(NewRun("run", SHOP, POLICY, "distributed", queue, b'{"zipcode": 1}'))
    await scene.put(
        *pages("a", 12), *pages("b", 9, priority=-1), page("b/first", priority=7, handler="detail", depth=3)
    )
    await scene.put(
        page("c/0"), page("d/0"), page("e/0"), page("f/0", lane="files", extra=EXTRA), page("g/0", wait=HOURS)
    )
    await scene.put(page("a/0"), page("h/0", key=None), page("h/0", key=None), page("i/0"), page("j/0", ttl=5 * HOURS))
    await scene.frontier.seal_run("run")
    for settled in range(2):
        leases = {lease.task.site: lease for lease in await scene.claim(50)}
        await scene.settle(*outcomes(leases, settled))
        await scene.advance(1000)


def outcomes(leases: dict[str, Lease], settled: int) -> list[Settlement]:
    """What became of the first pages; the second time, links that are partly known come in, and leases go back."""
    if settled:
        found = (page("a/0"), page("a/new", depth=1), page("k/0", priority=2))
        first = settle(leases.pop("a"), Done((b'{"n":3}',), found, "https://a/x", "g"), started=None, requests=1)
        return [first, *(given_back(lease) for lease in leases.values())]
    return [outcome(lease) for lease in leases.values()]


def outcome(lease: Lease) -> Settlement:
    match lease.task.site:
        case "a":
            return done(lease, b'{"n":1}', b'{"n":2,"t":"\xc3\xbc"}', group="milk")
        case "b":
            return settle(lease, Done(), started=lease.claimed_at, requests=1, crawl_delay=4000)
        case "c":
            return retried(lease, 7000)
        case "d":
            return snoozed(lease, 60_000, penalty=2)
        case "e":
            return dead(lease, Reason(Blame.HANDLER, "KeyError", "shop.py:12", "Traceback:\n  é"))
        case "f":
            return snoozed(lease, 30_000, penalty=1)
        case _:
            return given_back(lease)


async def seen_by_readers(scene: Scene) -> dict[str, Any]:
    """All that the readers tell, without what is different in each store: numbers of tasks, and the moment."""
    run = await scene.reader.run("run")
    return {
        "run": msgspec.structs.replace(run, state=RunState.RUNNING, move=None),
        "items": await scene.items(limit=2),
        "dead": [msgspec.structs.replace(letter, task=0) for letter in await scene.reader.dead("run")],
    }


async def handed_out(scene: Scene) -> list[tuple[Any, ...]]:
    """Everything that waits, in the order of each lane, site and priority, with when it was given out after now."""
    began = await scene.now()
    leases = await scene.drain()
    order = sorted(leases, key=lambda lease: (lease.task.lane, lease.task.site, -lease.task.priority))
    return [
        (msgspec.structs.replace(lease.task, id=0), lease.start_at - began, lease.delay, lease.penalty)
        for lease in order
    ]


def same_but_for_clocks(mine: list[tuple[Any, ...]], others: list[tuple[Any, ...]]) -> None:
    """The same tasks in the same order, each not earlier than the other, and hardly later."""
    assert [(row[0], *row[2:]) for row in mine] == [(row[0], *row[2:]) for row in others]
    for one, other in zip(mine, others, strict=True):
        assert 0 <= one[1] - other[1] <= TOLERANCE * 20, (one, other)


class Killed(BaseException):
    """The process was killed: none of its code goes on."""


class Mortal:
    """A process that is killed at a certain call to a store, before it has its effect or before the answer comes."""

    def __init__(self, lives: int, *, answers: bool) -> None:
        self.lives = lives
        self._answers = answers

    def place(self, scene: Scene, shown: str) -> Place:
        return Place(cast("Any", MortalEngine(scene.engine, self)), shown)

    async def call(self, method: Any, *values: Any) -> Any:
        self.lives -= 1
        if self.lives == 0 and not self._answers:
            await method(*values)
        if self.lives <= 0:
            raise Killed
        return await method(*values)


class MortalEngine:
    """A store as a process sees it that can be killed."""

    def __init__(self, engine: Any, process: Mortal) -> None:
        self.reader, self.cache, self.shares_clock = engine.reader, engine.cache, engine.shares_clock
        self.frontier, self.mover = MortalPart(engine.frontier, process), MortalPart(engine.mover, process)


class MortalPart:
    def __init__(self, part: Any, process: Mortal) -> None:
        self._part = part
        self._process = process

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)
        return method if name == "pack" else lambda *values: self._process.call(method, *values)


async def is_open(scene: Scene) -> bool:
    """Whether tasks of the run can be claimed there, of a site that is due."""
    leases = await scene.claim(50)
    await scene.settle(*(given_back(lease) for lease in leases))
    return bool(leases)


def meanwhile(target: Scene, happens: Callable[[], Awaitable[None]]) -> None:
    """Let something happen after each part that has come into a store."""
    original = target.engine.mover.unpack

    async def unpack(*values: Any) -> None:
        await original(*values)
        await happens()

    cast("Any", target.engine.mover).unpack = unpack

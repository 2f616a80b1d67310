"""Sites and lists that Redis changes without opening them: nothing may differ from what another engine does."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from servers.redis import RedisServer
from servers.redis_stage import Stage, opened, own_store
from shoal.core.outcome import Done
from shoal.core.task import DIRECT, Extra, Lease
from shoal.frontier.redis.codec.encoding import packed_token, random_tokens
from shoal.frontier.sqlite.engine import open_sqlite
from shoal.testing.contract.scene import Scene, names, page, retried, settle
from shoal.testing.jump_clock import JumpClock

LONG_EXIT = "socks5://a-proxy-with-a-long-name.example:1080"


def terms(leases: Sequence[Lease]) -> dict[str, tuple[object, ...]]:
    """All that a lease says, but for what the store chose by chance."""
    return {
        lease.task.url: (
            *(lease.task.run_id, lease.task.attempts, lease.exit, lease.claimed_at, lease.start_at, lease.start_by),
            *(lease.expires_at, lease.delay, lease.exclusive, lease.penalty, lease.exit_failures),
        )
        for lease in leases
    }


class Twins:
    """SQLite and Redis on one clock, to which the same happens, by chance."""

    def __init__(self, scenes: list[Scene], clock: JumpClock, chance: random.Random, exit_name: str) -> None:
        self.scenes = scenes
        self.clock = clock
        self.chance = chance
        self.exit = exit_name
        self.sites = [f"{letter}.example" for letter in "abcdef"]
        self.serial = itertools.count()
        self.held: list[tuple[Lease, Lease]] = []
        self.handed_out = 0

    async def put(self) -> None:
        chance = self.chance
        tasks = [
            page(f"{chance.choice(self.sites)}/{next(self.serial)}", priority=chance.choice((0, 0, 0, 0, 1, -1)))
            for _ in range(chance.randrange(1, 9))
        ]
        run = chance.choice(("run", "run", "run", "other"))
        for scene in self.scenes:
            await scene.put(*tasks, run=run)

    async def claim(self) -> None:
        one, two = [await scene.exchange(want=50, exits=[self.exit]) for scene in self.scenes]
        assert terms(one.leases) == terms(two.leases)
        assert (one.left, one.wake_at) == (two.left, two.wake_at)
        by_url = {lease.task.url: lease for lease in two.leases}
        self.held.extend((lease, by_url[lease.task.url]) for lease in one.leases)
        self.handed_out += len(by_url)

    async def end(self) -> None:
        chance = self.chance
        chance.shuffle(self.held)
        for pair in [self.held.pop() for _ in range(min(len(self.held), chance.randrange(1, 4)))]:
            started = chance.choice((None, pair[0].start_at, pair[0].start_at + chance.randrange(300)))
            is_retried = chance.random() < 0.1
            for scene, lease in zip(self.scenes, pair, strict=True):
                ending = retried(lease) if is_retried else settle(lease, Done(), started=started, requests=1)
                assert not (await scene.settle(ending)).late

    async def wait(self) -> None:
        self.clock.advance(self.chance.choice((1, 100, 300, 1_000, 4_000)))

    async def sweep(self) -> None:
        for scene in self.scenes:
            await scene.sweep_all()
        self.held = [pair for pair in self.held if pair[0].expires_at > self.clock.now()]

    async def compare(self) -> None:
        for site in self.sites:
            one, two = [await scene.reader.site(site) for scene in self.scenes]
            assert one == two


@pytest.mark.parametrize("exit_name", [DIRECT, LONG_EXIT], ids=["direct", "by a long name"])
@pytest.mark.parametrize("seed", range(2))
async def test_the_same_leases_and_clocks_as_sqlite(
    server: RedisServer, stack: AsyncExitStack, tmp_path: Path, seed: int, exit_name: str
) -> None:
    """Few sites with short lists, one lease at a time, by one exit: all terms and all clocks are the same."""
    clock = JumpClock()
    sqlite = await open_sqlite(tmp_path / "twin.db", clock=clock)
    stack.push_async_callback(sqlite.close)
    scenes = [Scene(Stage(e, clock)) for e in (sqlite, await opened(stack, own_store(server), clock=clock))]
    for scene in scenes:
        await scene.open_run("run", queue="q", delay=300, lease=20_000, hard_timeout=5_000)
        await scene.open_run("other", queue="q", delay=700, lease=20_000, hard_timeout=5_000)
    twins = Twins(scenes, clock, random.Random(seed), exit_name)
    for _ in range(300):
        happens = (twins.put, twins.claim, twins.claim, twins.end, twins.end, twins.wait)
        await twins.chance.choice(happens)()
        await twins.sweep()
        await twins.compare()
    for scene in scenes:
        await scene.check_books()
    print(f"seed {seed}: {twins.handed_out} leases, all the same")
    assert twins.handed_out > 60


async def test_priorities_in_short_lists_of_visited_sites(scene: Scene) -> None:
    await scene.open_run(delay=0)
    await scene.put("a.example/visited", "a.example/1")
    visited = await scene.claim_one()
    await scene.put("a.example/2", page("a.example/low", priority=-1))
    await scene.put("a.example/3", page("a.example/high", priority=1))
    await scene.settle(settle(visited, Done()))
    assert names(await scene.drain()) == [f"a.example/{name}" for name in ("high", "1", "2", "3", "low")]


async def test_a_huge_task_behind_others(scene: Scene) -> None:
    """Longer than 64 KB, which takes a longer head in a packed list."""
    await scene.open_run(delay=0)
    await scene.put("a.example/visited", "a.example/1")
    visited = await scene.claim_one()
    data = {"text": "x" * 70_000}
    await scene.put(page("a.example/huge", extra=Extra(data=data)))
    await scene.put("a.example/2")
    await scene.settle(settle(visited, Done()))
    leases = await scene.drain()
    assert names(leases) == ["a.example/1", "a.example/huge", "a.example/2"]
    assert leases[1].task.extra.data == data


async def test_a_site_that_runs_out_of_tasks_is_found_again(scene: Scene) -> None:
    await scene.open_run(delay=1_000)
    for number in range(3):
        await scene.put(f"a.example/{2 * number}", f"a.example/{2 * number + 1}")
        site = await scene.reader.site("a.example")
        assert site is not None
        assert site.waiting == 2
        assert names(await scene.drain(exits=[LONG_EXIT])) == [f"a.example/{2 * number}", f"a.example/{2 * number + 1}"]
    await scene.check_books()


def test_tokens_are_numbers_that_lua_knows_exactly() -> None:
    packed = random_tokens(500)
    tokens = [int.from_bytes(packed[at + 1 : at + 9], "big") for at in range(0, len(packed), 9)]
    assert packed == b"".join(map(packed_token, tokens))
    assert len(set(tokens)) == 500
    assert 1 << 52 < max(tokens) < 1 << 53
    assert {bit for bit in range(53) if any(token >> bit & 1 for token in tokens)} == set(range(53))

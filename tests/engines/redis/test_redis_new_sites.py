"""Sites that Redis has met and nobody has visited: they take little room, and wait in order with all others."""

from __future__ import annotations

from shoal.frontier.redis.codec.move_rows import Packing
from shoal.frontier.redis.store.client import RedisStore
from shoal.testing.contract.scene import Scene, done, names, page, pages

GOAL = 300
"""Bytes for each waiting URL, whatever its site."""


def store_of(scene: Scene) -> RedisStore:
    store: RedisStore = scene.engine._store  # type: ignore[attr-defined]
    return store


async def kinds(scene: Scene) -> dict[str, int]:
    """What a store has in memory, in bytes by kind of key."""
    store = store_of(scene)
    found: dict[str, int] = {}
    for key in await store.command("KEYS", f"{store.tag(0)}:*"):
        kind = key.decode().partition("}:")[2].partition(":")[0]
        found[kind] = found.get(kind, 0) + int(await store.command("MEMORY USAGE", key, "SAMPLES", 0))
    return found


async def test_a_waiting_url_with_a_site_of_its_own_is_small(scene: Scene) -> None:
    await scene.open_run()
    path = "/books/item-000000000/index.html"
    await scene.put(*(f"shop-{n:07d}.example{path}" for n in range(30_000)))
    taken = await kinds(scene)
    each = sum(taken.values()) / 30_000
    print({kind: round(size / 30_000) for kind, size in sorted(taken.items()) if size > 100_000}, f"{each:.0f} B each")
    assert "q" not in taken
    assert each <= GOAL


async def test_new_sites_and_others_are_visited_in_the_order_of_their_times(scene: Scene) -> None:
    await scene.open_run(delay=100)
    await scene.put("old.example/1", "old.example/2", "older.example/1", "older.example/2")
    await scene.settle(*(done(lease) for lease in await scene.claim(2)))
    await scene.advance(50)
    await scene.put("a.example/1", "b.example/1")
    await scene.advance(50)
    await scene.put("c.example/1")
    await scene.advance(50)
    served = [names(await scene.claim(2)), names(await scene.claim(2)), names(await scene.claim(2))]
    assert [served[0], sorted(served[1]), served[2]] == [
        ["a.example/1", "b.example/1"],
        ["old.example/2", "older.example/2"],
        ["c.example/1"],
    ]


async def test_the_second_task_of_a_new_site_waits_behind_the_first(scene: Scene) -> None:
    await scene.open_run(delay=0)
    await scene.put("a.example/1", "b.example/1")
    await scene.put("a.example/2", page("a.example/first", priority=5))
    assert sorted(names(await scene.drain())) == ["a.example/1", "a.example/2", "a.example/first", "b.example/1"]
    await scene.put("c.example/1")
    await scene.put("c.example/2", page("c.example/first", priority=5))
    assert names(await scene.drain()) == ["c.example/first", "c.example/1", "c.example/2"]
    await scene.check_books()


async def test_a_new_site_in_two_lines(scene: Scene) -> None:
    """One site, tasks of two lanes: the first is no longer packed with the site, and neither is lost."""
    await scene.open_run(delay=0)
    await scene.put("a.example/page")
    await scene.put(page("a.example/file", lane="files"))
    assert [site.waiting for site in await scene.reader.sites()] == [2]
    assert names(await scene.claim(9, lanes=["files"])) == ["a.example/file"]
    await scene.advance(400_000)
    await scene.sweep_all()
    assert sorted(names(await scene.drain())) == ["a.example/file", "a.example/page"]
    await scene.check_books()


async def test_a_new_site_that_cannot_be_visited_yet_keeps_its_task(scene: Scene) -> None:
    """Its first visitor finds the exit banned there: it waits like any other site, and is served when the ban ends."""
    await scene.open_run(delay=0)
    await scene.put("a.example/1", "b.example/1")
    exits = scene.engine.exits
    await exits.ban("direct", 5_000, "a.example")
    assert names(await scene.claim(9)) == ["b.example/1"]
    assert [site.waiting for site in await scene.reader.sites()] == [1, 0]
    await scene.advance(5_000)
    assert names(await scene.claim(9)) == ["a.example/1"]


async def test_new_sites_whose_tasks_expired_leave_nothing_in_line(scene: Scene) -> None:
    await scene.open_run(delay=0)
    await scene.put(*(page(f"{n}.example/1", ttl=1_000) for n in range(50)))
    await scene.advance(1_000)
    await scene.sweep_all()
    assert (await scene.counters()).expired == 50
    assert not {"f", "d", "q", "x"} & (await kinds(scene)).keys()
    await scene.put(*(f"{n}.example/2" for n in range(50)))
    assert len(await scene.claim(99)) == 50


async def test_stale_new_sites_are_passed_over(scene: Scene) -> None:
    await scene.open_run(delay=0)
    await scene.put(*(page(f"{n}.example/1", ttl=1_000) for n in range(50)), "z.example/1", *pages("y.example", 2))
    await scene.advance(1_000)
    await scene.put(*(f"{n}.example/2" for n in range(10)))
    served = names(await scene.claim(99))
    assert sorted(served) == sorted(["z.example/1", "y.example/0", *(f"{n}.example/2" for n in range(10))])
    assert "f" not in await kinds(scene)


async def test_a_run_that_moves_takes_the_tasks_of_new_sites_along(scene: Scene) -> None:
    """Of sites that nobody has looked at, of those that were looked at in vain or in the same step, and of one with a
    list."""
    await scene.open_run(delay=0)
    await scene.put(*(f"{n}.example/1" for n in range(600)), *pages("many.example", 9))
    await scene.frontier.enqueue("run", [page("0.example/file", lane="files")])
    await scene.engine.exits.ban("direct", 5_000, "1.example")
    first, second = await scene.claim(2, lanes=["bulk"])
    assert names([first, second]) == ["0.example/1", "2.example/1"]
    links = [page("met-at-once.example/1", lane="priority"), page("met-at-once.example/2", lane="priority")]
    granted = await scene.exchange(done(first, tasks=links), want=1, lanes=["priority"])
    assert names(granted.leases) == ["met-at-once.example/1"]
    run = await scene.reader.run("run")
    packing = Packing(store_of(scene), run, 1)
    taken = [task.url async for cargo in packing.everything(await scene.now()) for task in cargo.tasks]
    left = [*(f"https://{n}.example/1" for n in (1, *range(3, 600))), *(f"https://many.example/{n}" for n in range(9))]
    assert sorted(taken) == sorted([*left, "https://0.example/file", "https://met-at-once.example/2"])

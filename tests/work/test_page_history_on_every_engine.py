"""Answers that are used again and pages that have not changed: the same on every engine."""

from __future__ import annotations

import asyncio

from shoal.frontier.contract.engine import Engine
from shoal.testing.hostile_site import HostileSite
from support.page_looks import asked, change, looking, recorded, seen, visit
from support.working import result_of, start_run, worker_for


async def test_a_fresh_answer_is_used_again_and_costs_the_slot_nothing(any_engine: Engine, site: HostileSite) -> None:
    scraper = looking(cache="1h", delay=0.2)
    first = await visit(any_engine, scraper, "first", site.url("/plain/a"))
    (slot,) = await any_engine.reader.slots(f"127.0.0.1:{site.port}")
    second = await visit(any_engine, scraper, "second", site.url("/plain/a"))
    (after,) = await any_engine.reader.slots(f"127.0.0.1:{site.port}")
    assert asked(site, "/plain/a") == [200]
    assert after.next_at == slot.next_at, "no request, so the clock stands where it stood"
    counts = second.counters
    assert (counts.done, counts.requests, counts.received, counts.saved_requests) == (1, 0, 0, 1)
    assert counts.saved_bytes == first.counters.received > 1_000
    assert [(item["h1"], item["status"], item["unchanged"]) for item in second.items] == [("a v1", 200, True)]


async def test_two_runs_at_once_ask_the_target_once(any_engine: Engine, site: HostileSite) -> None:
    scraper = looking(cache=True)
    for run in ("one", "two", "three"):
        await start_run(any_engine, scraper, run, urls=[site.url("/delay/50")])
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        for _ in range(2):
            group.create_task(worker_for(any_engine, scraper).run())
    assert asked(site, "/delay/50") == [200]
    for run in ("one", "two", "three"):
        assert (await result_of(any_engine, run)).counters.done == 1


async def test_what_changes_is_recorded_once_and_told_to_handlers(any_engine: Engine, site: HostileSite) -> None:
    scraper = looking(changes=True)
    pages = (site.url("/etag/a"), site.url("/modified/b"), site.url("/plain/c"))
    assert sorted(await seen(any_engine, scraper, "first", *pages)) == [(f"{n} v1", False) for n in "abc"]
    assert sorted(await seen(any_engine, scraper, "second", *pages)) == [(f"{n} v1", True) for n in "abc"]
    for name in "abc":
        await change(site, name)
    assert sorted(await seen(any_engine, scraper, "third", *pages)) == [(f"{n} v2", False) for n in "abc"]
    assert asked(site, "/etag/a") == asked(site, "/modified/b") == [200, 304, 200]
    assert asked(site, "/plain/c") == [200, 200, 200]
    paths = ("/etag/a", "/modified/b", "/plain/c")
    assert sorted(await recorded(any_engine)) == sorted((kind, path) for kind in ("changed", "new") for path in paths)
    counts = (await result_of(any_engine, "second")).counters
    assert (counts.requests, counts.saved_requests) == (3, 0)
    assert counts.saved_bytes > 2_000, "two bodies were not sent"


async def test_pages_are_visited_again_and_again(any_engine: Engine, site: HostileSite) -> None:
    scraper = looking(every="50ms", delay=0.01)
    scraper.start_urls = (site.url("/etag/a"), site.url("/fading/410/2/9/b"))
    await start_run(any_engine, scraper)
    worker = worker_for(any_engine, scraper)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        working = group.create_task(worker.run())
        while len(asked(site, "/etag/a")) < 4:
            await site.arrivals(len(site.log) + 1)
        assert not working.done(), "there is always another visit"
        worker.stop()
    result = await result_of(any_engine)
    assert asked(site, "/etag/a")[:4] == [200, 304, 304, 304]
    assert asked(site, "/fading/410/2/9/b") == [200, 410]
    record = await recorded(any_engine)
    assert sorted(record) == [("gone", "/fading/410/2/9/b"), ("new", "/etag/a"), ("new", "/fading/410/2/9/b")]
    counts = result.counters
    assert (counts.dead, counts.remaining, counts.duplicates, counts.retries) == (1, 1, 0, 0)
    assert counts.done == counts.items == len(result.items) >= 4
    assert [item["unchanged"] for item in result.items if "etag" in item["url"]][:4] == [False, True, True, True]

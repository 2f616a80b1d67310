"""Who is at work, on what, and which work there is: for those who look."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.core.outcome import Done
from shoal.core.task import LanePolicy
from shoal.frontier.contract.frontier import Duties, WorkerInfo
from shoal.frontier.contract.reader import SHOWN_TASKS, HeldTask, WorkerRecord
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import SHOP, Scene, page, settle, worker


@pytest.mark.asyncio
class WorkerContract:
    """Heartbeats, duties, what workers have in hand, and what waits for which scraper."""

    async def test_every_call_of_a_worker_counts_as_a_sign_of_life(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.exchange(by="idle")
        await scene.advance(5_000)
        assert (await _record(scene, "idle")).silent == 5_000
        await scene.exchange(by="idle")
        seen = await _record(scene, "idle")
        assert (seen.silent, seen.leases, seen.tasks) == (0, 0, [])
        await scene.advance(400)
        await scene.exchange(by="idle")
        assert (await _record(scene, "idle")).silent <= 400
        await scene.advance(5_000)
        await scene.frontier.renew(worker("idle"), [])
        assert (await _record(scene, "idle")).silent == 0

    async def test_a_worker_shows_its_duties_and_some_of_what_it_has_in_hand(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run("one", delay=0, concurrency=10)
        await scene.open_run("two", delay=0, concurrency=10)
        await scene.put(*(f"a.example/{number}" for number in range(4)), run="one")
        await scene.put(page("b.example/x", lane="priority"), run="two")
        duties = Duties((SHOP, "other"), ("priority", "bulk"), ("one", "two"))
        busy = WorkerInfo("busy", "another machine", 1, 1, "/tmp/notes", duties)  # noqa: S108 - never opened
        granted = await scene.frontier.exchange(msgspec.structs.replace(scene.ask(want=9), worker=busy))
        assert len(granted.leases) == 5
        record = await _record(scene, "busy")
        assert (record.info, record.leases, len(record.tasks)) == (busy, 5, SHOWN_TASKS)
        in_hand = {HeldTask(lease.task.run_id, lease.task.lane, lease.task.url) for lease in granted.leases}
        assert set(record.tasks) <= in_hand
        [x] = [lease for lease in granted.leases if lease.task.run_id == "two"]
        others = [settle(lease, Done()) for lease in granted.leases if lease is not x]
        await scene.frontier.exchange(msgspec.structs.replace(scene.ask(*others, want=0), worker=busy))
        record = await _record(scene, "busy")
        assert (record.leases, list(record.tasks)) == (1, [HeldTask("two", "priority", "https://b.example/x")])

    async def test_workers_without_a_word_about_duties_have_none(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.exchange(by="plain")
        assert (await _record(scene, "plain")).info == worker("plain")

    async def test_what_a_lane_acknowledges_itself_is_held_and_need_not_be_shown(self, harness: Harness) -> None:
        scene = Scene(harness)
        await scene.open_run(lanes={"priority": LanePolicy(auto_ack=True)})
        await scene.put(page("a.example/1", lane="priority"))
        await scene.claim_one(by="w")
        record = await _record(scene, "w")
        assert record.leases == 1
        assert {task.url for task in record.tasks} <= {"https://a.example/1"}

    async def test_what_is_left_of_each_scraper(self, harness: Harness) -> None:
        scene = Scene(harness)
        assert dict(await scene.reader.scrapers()) == {}
        for run, scraper in (("one", SHOP), ("two", SHOP), ("three", "other")):
            await scene.open_run(run, scraper=scraper, delay=0)
            await scene.put("a.example/1", "b.example/1", run=run)
        assert dict(await scene.reader.scrapers()) == {SHOP: 4, "other": 2}
        [lease] = await scene.claim(1)
        assert dict(await scene.reader.scrapers()) == {SHOP: 4, "other": 2}, "what is in work has not ended"
        await scene.settle(settle(lease, Done()))
        assert dict(await scene.reader.scrapers()) == {SHOP: 3, "other": 2}
        await scene.drain(scrapers=["other"])
        assert dict(await scene.reader.scrapers()) == {SHOP: 3}


async def _record(scene: Scene, name: str) -> WorkerRecord:
    found: dict[str, Any] = {record.info.worker_id: record for record in await scene.reader.workers()}
    record: WorkerRecord = found[name]
    return msgspec.structs.replace(record, tasks=list(record.tasks))

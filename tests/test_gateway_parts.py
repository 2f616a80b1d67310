"""The parts of the gateway on a real store: one read for many, one commit for many, and what happens when it fails."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel

from shoal import Page, Request, Scraper
from shoal.errors import EngineUnavailable
from shoal.frontier.jobs import ANY, Backlog, JobStatus, NewJob, Submitted
from shoal.frontier.protocol import Ask
from shoal.frontier.reading import Item
from shoal.frontier.sqlite.engine import SqliteEngine, open_sqlite
from shoal.gateway import bench as bench_module
from shoal.gateway import connection, server, submitting
from shoal.gateway.answer import Problem
from shoal.gateway.bench import Bench, TooBusy
from shoal.gateway.coalescing import Coalesced
from shoal.gateway.documents import grouped
from shoal.gateway.keys import ANYBODY
from shoal.gateway.options import GatewayOptions
from shoal.gateway.pace import ask_again, estimate, own_work
from shoal.gateway.reach import away
from shoal.gateway.service import Service
from shoal.gateway.watching import TICK
from shoal.task import DEFAULT_POOL, DIRECT
from shoal.testing.contract.scene import worker


class Word(BaseModel):
    word: str


def shop() -> Scraper:
    scraper = Scraper("shop", input=Word, delay=0)

    @scraper.start
    def begin(given: Word) -> Any:
        yield Request(f"https://shop.example/{given.word}", group=given.word)

    @scraper.page
    def read(page: Page) -> Any:
        yield {}

    return scraper


class Tap:
    """The jobs of a store, with every call noted, and stopped or failed if a test wants it."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._jobs = engine.jobs
        self.reads: list[int] = []
        self.told = 0
        self.groups: list[int] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.trouble: Exception | None = None

    async def statuses(self, known: Mapping[str, int]) -> Sequence[JobStatus]:
        self.reads.append(len(known))
        if self.trouble:
            raise self.trouble
        found = await self._jobs.statuses(known)
        self.told += len(found)
        return found

    async def submit(self, jobs: Sequence[NewJob]) -> Sequence[Submitted]:
        self.groups.append(len(jobs))
        await self.gate.wait()
        if self.trouble:
            raise self.trouble
        return await self._jobs.submit(jobs)

    async def backlogs(self) -> Sequence[Backlog]:
        if self.trouble:
            raise self.trouble
        return await self._jobs.backlogs()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jobs, name)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[SqliteEngine]:
    opened = await open_sqlite(tmp_path / "shoal.db")
    yield opened
    await opened.close()


@pytest.fixture
def tap(engine: SqliteEngine) -> Tap:
    made = Tap(engine)
    engine.jobs = made  # type: ignore[assignment]
    return made


@pytest.fixture
async def service(engine: SqliteEngine, tap: Tap) -> AsyncIterator[Service]:
    made = Service(engine, [shop()], GatewayOptions(max_queue=500))
    async with made.running():
        yield made


async def until(holds: Callable[[], object]) -> None:
    """Until something holds that will hold soon."""
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.005)


async def submit(service: Service, word: str) -> str:
    body = b'{"word": "%b"}' % word.encode()
    accepted = await service.submit(ANYBODY, "shop", body, None, None, body)
    return accepted.submitted.job_id


async def test_submissions_at_the_same_time_share_a_commit(service: Service, tap: Tap) -> None:
    tap.gate.clear()
    waiting = [asyncio.create_task(submit(service, f"w{n}")) for n in range(300)]
    await until(lambda: sum(tap.groups) + len(service.submissions._waiting) == 300)
    tap.gate.set()
    job_ids = await asyncio.gather(*waiting)
    assert len(set(job_ids)) == 300
    assert len(await service.store.jobs.statuses(dict.fromkeys(job_ids, ANY))) == 300
    assert len(tap.groups) < 30, tap.groups


async def test_a_thousand_who_wait_are_one_read_a_tick(service: Service, tap: Tap) -> None:
    statuses = [await service.see(ANYBODY, await submit(service, f"w{n}")) for n in range(100)]
    waiting = [asyncio.create_task(service.wait(ANYBODY, status, None, 60)) for status in statuses for _ in range(10)]
    await until(lambda: service.watch.waiting == 1000)
    tap.reads.clear()
    await until(lambda: len(tap.reads) >= 3)
    assert set(tap.reads) == {100}, "each id once"
    for status in statuses:
        await service.store.frontier.cancel_run(status.job_id)
    ended = await asyncio.gather(*waiting)
    assert [each.job_id for each in ended] == [status.job_id for status in statuses for _ in range(10)]
    assert service.watch.waiting == 0
    assert not service.watch._versions
    assert len(tap.reads) < 60, "however many wait"


async def test_what_has_changed_is_told_once_and_wakes_only_those_who_want_to_know(service: Service, tap: Tap) -> None:
    status = await service.see(ANYBODY, await submit(service, "w"))
    patient = asyncio.create_task(service.wait(ANYBODY, status, None, 60))
    curious = asyncio.create_task(service.wait(ANYBODY, status, status.version, 60))
    await until(lambda: service.watch.waiting == 2)
    tap.told = 0
    ask = Ask(worker(), ("shop",), ("bulk",), {DEFAULT_POOL: (DIRECT,)}, 1)
    await service.store.frontier.exchange(ask)
    assert (await curious).state.value == "processing"
    tap.reads.clear()
    await until(lambda: len(tap.reads) >= 3)
    assert (tap.told, patient.done()) == (1, False)
    await service.store.frontier.cancel_run(status.job_id)
    assert (await patient).state.value == "cancelled"


async def test_more_than_can_be_read_at_once_are_read_in_turns() -> None:
    reads: list[list[str]] = []

    async def read(keys: Sequence[str]) -> dict[str, str]:
        reads.append(list(keys))
        return {key: key.upper() for key in keys if key != "c"}

    coalesced = Coalesced(read, 2)
    running = asyncio.create_task(coalesced.run())
    async with asyncio.timeout(20):
        found = await asyncio.gather(*(coalesced.get(key) for key in "abcdea"))
    running.cancel()
    assert found == ["A", "B", None, "D", "E", "A"]
    assert reads == [["a", "b"], ["c", "d"], ["e"]]


async def test_many_who_look_at_once_are_few_reads(service: Service, tap: Tap) -> None:
    job_ids = [await submit(service, f"w{n}") for n in range(20)]
    tap.reads.clear()
    seen = await asyncio.gather(*(service.see(ANYBODY, job_id) for job_id in job_ids * 50))
    assert [status.job_id for status in seen] == job_ids * 50
    assert len(tap.reads) <= 3, tap.reads


async def test_whoever_asks_while_the_store_is_waited_for_is_told_together_with_the_others() -> None:
    """And does not wait for it a second time."""
    reads: list[Sequence[str]] = []
    answer = asyncio.Event()

    async def read(keys: Sequence[str]) -> Mapping[str, int]:
        reads.append(keys)
        await answer.wait()
        raise away()

    coalesced = Coalesced(read, 100)
    running = asyncio.create_task(coalesced.run())
    first = asyncio.create_task(coalesced.get("first"))
    await until(lambda: reads)
    others = [asyncio.create_task(coalesced.get(key)) for key in ("first", "other")]
    await asyncio.sleep(0)
    answer.set()
    for asked in (first, *others):
        with pytest.raises(Problem, match="store"):
            await asked
    assert reads == [["first"]]
    running.cancel()


async def test_more_than_may_wait_are_answered_at_once(engine: SqliteEngine) -> None:
    service = Service(engine, [shop()], GatewayOptions(max_waiting=1))
    async with service.running():
        status = await service.see(ANYBODY, await submit(service, "w"))
        first = asyncio.create_task(service.wait(ANYBODY, status, None, 60))
        await until(lambda: service.watch.waiting)
        assert await service.wait(ANYBODY, status, None, 60) == status
        service.close()
        assert (await first).job_id == status.job_id


async def test_a_store_that_fails_is_asked_no_more_until_it_is_back(service: Service, tap: Tap) -> None:
    job_id = await submit(service, "w")
    tap.trouble = EngineUnavailable("it is gone")
    with pytest.raises(Problem, match="store") as told:
        await service.see(ANYBODY, job_id)
    assert told.value.status == 503
    assert "gone" not in str(told.value), "what the engine says is for the log"
    number = len(tap.reads)
    for _ in range(50):
        with pytest.raises(Problem):
            await service.see(ANYBODY, job_id)
        with pytest.raises(Problem):
            await submit(service, "x")
    assert (len(tap.reads), tap.groups) == (number, [1])
    tap.trouble = None
    await until(lambda: service.reach.trouble is None)
    assert (await service.see(ANYBODY, job_id)).job_id == job_id


async def test_whoever_waits_when_the_store_fails_goes_on_waiting(service: Service, tap: Tap) -> None:
    status = await service.see(ANYBODY, await submit(service, "w"))
    waiting = asyncio.create_task(service.wait(ANYBODY, status, None, 60))
    await until(lambda: service.watch.waiting)
    tap.trouble = EngineUnavailable("it is gone")
    await until(lambda: service.reach.trouble is not None)
    number = len(tap.reads)
    await asyncio.sleep(3 * TICK)
    assert len(tap.reads) == number, "the ticks leave it alone"
    tap.trouble = None
    await until(lambda: service.reach.trouble is None)
    await service.store.frontier.cancel_run(status.job_id)
    assert (await waiting).state.value == "cancelled"


async def test_a_commit_that_hangs_is_the_only_one_in_doubt(engine: SqliteEngine, tap: Tap) -> None:
    service = Service(engine, [shop()], GatewayOptions(store_patience=0.2))
    async with service.running():
        tap.gate.clear()
        first = asyncio.create_task(submit(service, "first"))
        await until(lambda: tap.groups)
        answers = await asyncio.gather(*(submit(service, f"w{n}") for n in range(20)), return_exceptions=True)
        assert all(isinstance(answer, Problem) and answer.status == 503 for answer in answers)
        with pytest.raises(Problem):
            await first
        with pytest.raises(Problem) as told:
            await submit(service, "late")
        assert told.value.kind == "store-unavailable", "at once, without waiting in vain"
        tap.gate.set()
        await until(lambda: service.submissions._committing_since == math.inf)
        await submit(service, "after")
        (backlog,) = await service.store.jobs.backlogs()
        assert (tap.groups, backlog.unfinished) == ([1, 1], 2), "those who still waited were not created"


async def test_submissions_are_turned_away_before_they_pile_up(
    service: Service, tap: Tap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submitting, "MOST_WAITING", 10)
    monkeypatch.setattr(submitting, "JOBS_AT_ONCE", 5)
    status = await service.see(ANYBODY, await submit(service, "first"))
    tap.gate.clear()
    waiting = [asyncio.create_task(submit(service, f"w{n}")) for n in range(40)]
    await until(lambda: any(task.done() for task in waiting))
    assert (await service.see(ANYBODY, status.job_id)).job_id == status.job_id, "reading goes on"
    tap.gate.set()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    turned_away = [answer for answer in answers if isinstance(answer, Problem)]
    assert {problem.kind for problem in turned_away} == {"overloaded"}
    assert 0 < len(turned_away) < 40


@pytest.mark.parametrize("said", [b"", b"GET /health HT", b"GET /health HTTP/1.1\r\nHost: x\r\n"])
async def test_whoever_does_not_say_what_he_wants_is_hung_up_on(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(connection, "HEAD_WITHIN", 0.1)
    monkeypatch.setattr(server, "LOOK_FOR_THE_SLOW", 0.02)
    gateway = server.GatewayProcess(engine, [shop()], GatewayOptions())
    at = server.listening("127.0.0.1", 0, shared=False)
    running = asyncio.create_task(gateway.run(at))
    async with asyncio.timeout(30):
        while True:
            with suppress(ConnectionError):
                reader, writer = await asyncio.open_connection(*at.getsockname())
                break
            await asyncio.sleep(0.01)
        writer.write(said)
        told = await reader.read()
        writer.close()
        gateway.stop()
        await running
    assert told.startswith(b"HTTP/1.1 408 ")


async def test_a_full_queue_takes_no_more(service: Service) -> None:
    service.backlogs = {"jobs:shop": Backlog("jobs:shop", 500, 0)}
    with pytest.raises(Problem, match="500 jobs") as told:
        await submit(service, "w")
    assert (told.value.status, told.value.kind) == (503, "queue-full")


class TestTheBench:
    async def test_what_is_raised_comes_through(self) -> None:
        bench = Bench(1)
        with pytest.raises(ZeroDivisionError):
            await bench.run(lambda _: 1 // 0, 5)
        assert await bench.run(lambda _: 7, 5) == 7
        bench.close()

    async def test_work_that_hangs_is_left_behind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bench_module, "MOST_STUCK", 2)
        bench, stop = Bench(1), threading.Event()
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await bench.run(lambda _: stop.wait(), 0.05)
        with pytest.raises(TooBusy):
            await bench.run(lambda _: 7, 5)
        stop.set()
        await until(lambda: not bench._stuck)
        assert await bench.run(lambda _: 7, 5) == 7
        assert bench._threads == 1
        bench.close()

    async def test_work_that_no_thread_has_time_for(self) -> None:
        bench, go, begun = Bench(1), threading.Event(), threading.Event()

        def long(_: object) -> bool:
            begun.set()
            return go.wait()

        first = asyncio.create_task(bench.run(long, 20))
        await until(begun.is_set)
        with pytest.raises(TooBusy):
            await bench.run(lambda _: 7, 0.05)
        assert bench._stuck == 0
        go.set()
        assert await first is True
        assert await bench.run(lambda _: 8, 5) == 8
        bench.close()


class TestPace:
    def test_by_the_pace_of_the_last_minute(self) -> None:
        assert estimate(601, 5, Backlog("q", 700, 300)) == pytest.approx(125)

    def test_without_any_pace_everybody_takes_as_long_as_oneself(self) -> None:
        assert estimate(4, 5, None) == estimate(4, 5, Backlog("q", 9, 0)) == 20
        assert estimate(1, 5, None) == 5

    def test_own_work_is_paced_by_the_delay(self) -> None:
        assert own_work(3, 1000, 1) == 3
        assert own_work(0, 1000, 1) == 1

    def test_hints_grow_with_the_wait(self) -> None:
        hints = [ask_again(seconds) for seconds in (0, 5, 20, 100, 299, 5000)]
        assert hints == sorted(hints)
        assert (hints[0], hints[2], hints[-1]) == (1, 2, 30)


class TestDocuments:
    def test_every_group_is_there_in_the_order_asked_for(self) -> None:
        items = [Item("u", group, msgspec.Raw(b"{}")) for group in ("eggs", None, "new", "eggs")]
        assert {group: len(found) for group, found in dict(grouped(("milk", "eggs"), items)).items()} == {  # type: ignore[arg-type]
            "milk": 0,
            "eggs": 2,
            "": 1,
            "new": 1,
        }
        assert list(grouped(("milk", "eggs"), items)) == ["milk", "eggs", "", "new"]

    def test_without_groups_it_is_a_list(self) -> None:
        assert grouped((), [Item("u", None, msgspec.Raw(b"{}"))]) == [msgspec.Raw(b"{}")]
        assert grouped((), []) == []

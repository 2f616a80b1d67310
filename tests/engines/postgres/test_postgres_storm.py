"""Many workers at once on few sites, and a server that goes away: no error escapes, and the books are right."""

from __future__ import annotations

import asyncio
import itertools
import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256

import asyncpg  # type: ignore[import-untyped]
import pytest

from servers.postgres import PostgresServer, need_programs, shared_server
from shoal.core.outcome import Blame, Dead, Done, Outcome, Reason, Retried, Settlement, Snoozed
from shoal.core.task import DEFAULT_POOL, Lease, NewTask, Policy
from shoal.errors import EngineUnavailable
from shoal.frontier.contract.exits import NewExit
from shoal.frontier.contract.frontier import Ask, NewRun, WorkerInfo
from shoal.frontier.postgres.engine import PostgresEngine, open_postgres

SITES = 5
CONCURRENCY = 2
EXITS = ("one", "two")
REASON = Reason(Blame.URL, "storm")

TRUTHS = {
    "every ready task is counted by its visit, and no visit is empty": """
        SELECT count(*) FROM (SELECT site, line, count(*) AS n FROM task WHERE state = 0 GROUP BY site, line) AS t
        FULL JOIN visit AS v USING (site, line) WHERE t.n IS DISTINCT FROM v.ready""",
    "no ready task stands below the floor of its visit": """
        SELECT count(*) FROM task AS t JOIN visit AS v USING (site, line) WHERE t.state = 0 AND t.place < v.floor""",
    "every lease is counted by its slot": """
        SELECT count(*) FROM (SELECT site, exit, count(*) AS n FROM task WHERE state = 2 GROUP BY site, exit) AS t
        FULL JOIN slot AS k USING (site, exit) WHERE coalesce(t.n, 0) <> coalesce(k.live, 0)""",
    "no slot has more leases than it may (I3)": """
        SELECT count(*) FROM slot AS k JOIN site AS s ON s.id = k.site WHERE k.live > s.concurrency OR k.live < 0""",
    "no exit has more leases than its cap": """
        SELECT count(*) FROM exit_book AS b
        WHERE b.cap > 0 AND (SELECT count(*) FROM task AS t WHERE t.state = 2 AND t.exit = b.name) > b.cap""",
    "the counters of runs and lines are the truth (I7)": """
        SELECT count(*) FROM (
            SELECT run, line, count(*) FILTER (WHERE state <> 2) AS waiting, count(*) FILTER (WHERE state = 2) AS live
            FROM task GROUP BY run, line) AS t
        FULL JOIN (
            SELECT run, line, sum(waiting) AS waiting, sum(live) AS live
            FROM (SELECT run, line, waiting, live FROM tally
                  UNION ALL SELECT run, line, waiting, live FROM tally_change) AS b
            WHERE line <> 0 GROUP BY run, line) AS c USING (run, line)
        WHERE coalesce(t.waiting, 0) <> coalesce(c.waiting, 0) OR coalesce(t.live, 0) <> coalesce(c.live, 0)""",
    "the totals of lines are those of their runs": """
        SELECT count(*) FROM line AS l
        JOIN (SELECT line, sum(waiting) AS waiting, sum(live) AS live FROM tally GROUP BY line) AS t ON t.line = l.id
        WHERE l.waiting <> t.waiting OR l.live <> t.live""",
}


async def check_truths(url: str, schema: str) -> None:
    """Compare everything that is counted with what is there."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(f"SET search_path TO {schema}")
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            wrong = [truth for truth, query in TRUTHS.items() if await connection.fetchval(query)]
        assert wrong == []
    finally:
        await connection.close()


class Crew:
    """Workers that exchange, fail, give back and find links, each with an engine of its own."""

    def __init__(self, url: str, *, workers: int, tasks: int, seed: int) -> None:
        self.url = url
        self.workers = workers
        self.chance = random.Random(seed)
        self.serial = itertools.count()
        self.left = tasks
        self.done: Counter[int] = Counter()
        self.unsure: set[int] = set()
        self.outages = 0
        self.telling = False

    def tasks(self, number: int) -> list[NewTask]:
        number = min(number, self.left)
        self.left -= number
        return [self.task() for _ in range(number)]

    def task(self) -> NewTask:
        site = f"{self.chance.randrange(SITES)}.example"
        url = f"https://{site}/{next(self.serial)}"
        lane = self.chance.choice(("bulk", "files"))
        return NewTask(url, site, sha256(url.encode()).digest(), lane, priority=self.chance.randrange(2))

    def outcome(self) -> Outcome:
        kind = self.chance.random()
        if kind < 0.1:
            return Retried(self.chance.randrange(20), REASON)
        if kind < 0.2:
            return Snoozed()
        if kind < 0.23:
            return Dead(REASON)
        links = self.tasks(self.chance.randrange(3))
        return Done((b"{}",), tuple(links))

    async def work(self, number: int, run: str) -> None:
        engine = await open_postgres(self.url)
        info = WorkerInfo(f"w{number}", "another machine", 1, 1)
        settlements: list[Settlement] = []
        try:
            while True:
                ask = Ask(info, ("storm",), ("bulk", "files"), {DEFAULT_POOL: EXITS}, 4, None, tuple(settlements))
                try:
                    granted = await engine.frontier.exchange(ask)
                except EngineUnavailable:
                    self.outages += 1
                    await asyncio.sleep(0.05)
                    continue
                late = set(granted.late)
                for settlement in settlements:
                    if isinstance(settlement.outcome, Done):
                        if settlement.token in late:
                            self.unsure.add(settlement.task)
                        else:
                            self.done[settlement.task] += 1
                settlements = [self.settle(lease) for lease in granted.leases]
                if granted.left == 0 and not settlements:
                    return
                if not settlements:
                    pause = 0.01 if granted.wake_at is None else max(0, granted.wake_at - granted.now) / 1000
                    await asyncio.sleep(min(pause, 0.05))
        finally:
            await engine.close()

    def settle(self, lease: Lease) -> Settlement:
        task, told = lease.task, self.telling and lease.exit == EXITS[0]
        failed = (lease.exit,) if told and self.chance.random() < 0.2 else ()
        works = (lease.exit,) if told and not failed else ()
        return Settlement(
            task.run_id,
            task.id,
            lease.token,
            self.outcome(),
            lease.claimed_at,
            1,
            exits_failed=failed,
            exits_ok=works,
        )

    async def seed(self, run: str, number: int) -> None:
        engine = await open_postgres(self.url)
        for _ in range(number):
            tasks = self.tasks(self.chance.randrange(1, 8))
            while True:
                try:
                    await engine.frontier.enqueue(run, tasks)
                    break
                except EngineUnavailable:
                    self.outages += 1
                    await asyncio.sleep(0.05)
        await engine.close()


@pytest.fixture
async def store() -> AsyncIterator[tuple[str, str, PostgresEngine]]:
    schema = f"test_{secrets.token_hex(6)}"
    url = shared_server().url(schema=schema)
    engine = await open_postgres(url)
    yield url, schema, engine
    await engine.close()
    shared_server().sql(f"DROP SCHEMA {schema} CASCADE", database="shoal")


@pytest.fixture
def fragile_server() -> Iterator[PostgresServer]:
    server = PostgresServer(need_programs())
    try:
        server.create()
        yield server
    finally:
        server.destroy()


@pytest.mark.parametrize("telling", [False, True], ids=["exits never heard of", "exits with caps, one of which fails"])
async def test_eight_workers_on_five_sites(store: tuple[str, str, PostgresEngine], *, telling: bool) -> None:
    url, schema, engine = store
    policy = Policy(delay=0, concurrency=CONCURRENCY)
    await engine.frontier.create_run(NewRun("storm", "storm", policy))
    crew = Crew(url, workers=8, tasks=500 if telling else 1500, seed=1)
    crew.telling = telling
    if telling:
        await engine.exits.put([NewExit(name, "", (DEFAULT_POOL,), cap=3) for name in EXITS])
    await engine.frontier.enqueue("storm", crew.tasks(50))

    async def watch() -> None:
        while True:
            await check_truths(shared_server().url(), schema)
            await engine.frontier.sweep()
            await asyncio.sleep(0.02)

    async with asyncio.TaskGroup() as group:
        watcher = group.create_task(watch())
        async with asyncio.TaskGroup() as workers:
            for number in range(crew.workers):
                workers.create_task(crew.work(number, "storm"))
            for _ in range(3):
                workers.create_task(crew.seed("storm", 60))
        watcher.cancel()
    await engine.frontier.seal_run("storm")
    run = await engine.reader.run("storm")
    counts = run.counters
    print(f"\nstorm: {counts}, outages {crew.outages}")
    assert set(crew.done.values()) == {1}, "one effective settlement per task"
    assert counts.done == len(crew.done) == counts.items
    assert (counts.remaining, counts.late, run.state) == (0, 0, "finished")
    assert counts.done + counts.dead == counts.accepted
    assert crew.outages == 0
    await check_truths(shared_server().url(), schema)
    assert "deadlock detected" not in shared_server().log()


@pytest.mark.parametrize("how", ["immediate", "kill -9", "backends"])
async def test_a_server_that_goes_away(fragile_server: PostgresServer, how: str) -> None:
    """Acknowledged is there, nothing is there twice, and workers go on by themselves when the server is back."""
    server = fragile_server
    url = server.url()
    engine = await open_postgres(url)
    policy = Policy(delay=0, concurrency=CONCURRENCY, lease=1_500, hard_timeout=0)
    await engine.frontier.create_run(NewRun("storm", "storm", policy))
    crew = Crew(url, workers=4, tasks=1500, seed=2)
    await engine.frontier.enqueue("storm", crew.tasks(100))

    async def sweep() -> None:
        while True:
            await asyncio.sleep(0.2)
            try:
                await engine.frontier.sweep()
            except EngineUnavailable:
                crew.outages += 1

    async def disturb() -> None:
        for _ in range(3):
            await asyncio.sleep(0.4)
            if how == "backends":
                await asyncio.to_thread(
                    server.sql, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shoal'"
                )
                continue
            await asyncio.to_thread(server.kill if how == "kill -9" else lambda: server.stop("immediate"))
            await asyncio.sleep(0.1)
            await asyncio.to_thread(server.start)

    async with asyncio.TaskGroup() as group:
        sweeper = group.create_task(sweep())
        async with asyncio.TaskGroup() as workers:
            workers.create_task(disturb())
            for number in range(crew.workers):
                workers.create_task(crew.work(number, "storm"))
            workers.create_task(crew.seed("storm", 150))
        sweeper.cancel()
    counts = (await engine.reader.run("storm")).counters
    print(f"\n{how}: {counts}, outages {crew.outages}, late after an outage {len(crew.unsure)}")
    assert crew.outages > 0, "nothing was disturbed"
    assert set(crew.done.values()) == {1}
    assert len(crew.done) <= counts.done <= len(crew.done.keys() | crew.unsure)
    assert (counts.remaining, counts.items) == (0, counts.done)
    await check_truths(server.url(), "shoal")
    await engine.close()

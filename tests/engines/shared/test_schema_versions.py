"""Versions of a store, on every engine: made once however many start, never touched if newer, migrated when asked."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from servers.postgres import shared_server
from shoal import Orchestrator, Page, Scraper
from shoal.core.task import NewTask, Policy
from shoal.errors import EngineBroken
from shoal.frontier.contract.frontier import Ask, NewRun, WorkerInfo
from shoal.frontier.open import open_engine
from shoal.frontier.postgres.schema import SCHEMA_VERSION as POSTGRES
from shoal.frontier.postgres.store.statements import STATEMENTS as POSTGRES_STEPS
from shoal.frontier.redis.schema import SCHEMA_VERSION as REDIS
from shoal.frontier.shared.versions import steps
from shoal.frontier.sqlite.schema import SCHEMA_VERSION as SQLITE
from shoal.frontier.sqlite.store.statements import STATEMENTS as SQLITE_STEPS
from support.command_line import script, shoal
from support.engine_urls import ENGINES, empty_store

NEWEST = {"sqlite": SQLITE, "postgresql": POSTGRES, "redis": REDIS}

OLDEST = {"sqlite": 3, "postgresql": 1, "redis": 1}
"""The oldest versions that steps lead from: those before workers said what they take on."""

OPENS = """
import asyncio, sys
from shoal.frontier.open import open_engine
from shoal.frontier.contract.frontier import NewRun
from shoal.core.task import Policy
print("ready", flush=True)
sys.stdin.readline()
async def main():
    engine = await open_engine(sys.argv[1], migrate=True)
    await engine.frontier.create_run(NewRun("run", "shop", Policy()))
    print(engine.schema.found is None, [run.run_id for run in await engine.reader.runs()])
    await engine.close()
asyncio.run(main())
"""


@pytest.fixture(params=ENGINES)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def store(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.chdir(tmp_path)
    with empty_store(kind, tmp_path) as url:
        yield url


def at_once(url: str, processes: int) -> list[str]:
    """What as many processes say that open a store at the same moment: all have loaded before the first may begin."""
    begun = [
        subprocess.Popen(
            [sys.executable, "-c", OPENS, url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for _ in range(processes)
    ]  # fmt: skip
    for process in begun:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in begun:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate(timeout=60)[0].strip() for process in begun]


def set_version(url: str, version: int) -> None:
    """What another version of Shoal would have left."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            file.execute(f"PRAGMA user_version = {version}")
    elif url.startswith("postgresql"):
        schema = parse_qs(urlsplit(url).query)["schema"][0]
        shared_server().sql(f"UPDATE {schema}.meta SET value = '{version}'", database="shoal")  # noqa: S608
    else:
        redis(url, "HSET", "{shoal:0}:meta", "version", str(version))


def redis(url: str, *words: str) -> None:
    port = str(urlsplit(url).port)
    subprocess.run(["redis-cli", "-p", port, *words], check=True, capture_output=True)


def test_many_processes_that_start_at_once_make_one_store(store: str) -> None:
    said = at_once(store, 8)
    assert sorted(said) == ["False ['run']"] * 7 + ["True ['run']"], "one has made it, the others have found it"


def test_a_newer_store_is_refused_with_one_sentence(kind: str, store: str, tmp_path: Path) -> None:
    assert shoal("doctor", "--migrate", "--engine", store).returncode == 0
    set_version(store, NEWEST[kind] + 1)
    (tmp_path / "shop.py").write_text(
        'from shoal import Scraper\nshop = Scraper("shop", start="http://127.0.0.1:9/")\nshop.page(lambda page: None)\n'
    )
    sentence = f"was written by a newer Shoal (schema {NEWEST[kind] + 1}, this one knows {NEWEST[kind]})"
    for command in (
        ("run", "shop.py"),
        ("worker", "shop.py", "--drain"),
        ("runs",),
        ("doctor", "--migrate"),
    ):
        answer = shoal(*command, "--engine", store)
        assert (answer.returncode, answer.stdout) == (2, ""), command
        assert sentence in answer.stderr
        assert answer.stderr.count("\n") == 1
    assert sentence in shoal("doctor", "--engine", store).stdout


def test_doctor_makes_the_store_once_and_says_so(kind: str, store: str) -> None:
    said = []
    for _ in range(2):
        answer = shoal("doctor", "--migrate", "--json", "--engine", store)
        findings = {finding["check"]: finding for finding in json.loads(answer.stdout)}
        assert findings["engine"]["verdict"] == "ok", answer
        said.append(findings["schema"]["text"])
    assert said == [f"{NEWEST[kind]}, made", f"{NEWEST[kind]}, as it should be"]


def test_doctor_does_not_make_a_store_unasked(store: str) -> None:
    for _ in range(2):
        answer = shoal("doctor", "--engine", store)
        assert answer.returncode == 0
        assert "will be made by the first run" in answer.stdout


async def older_store(kind: str, url: str) -> None:
    """A store with one run and one worker, as it was before workers said what they take on."""
    engine = await open_engine(url)
    try:
        await engine.frontier.create_run(NewRun("old", "books", Policy(delay=0)))
        await engine.frontier.enqueue("old", [NewTask(f"http://x.example/{n}", "x.example", None) for n in range(2)])
        await engine.frontier.seal_run("old")
        holder = WorkerInfo("holder", "elsewhere", 1, 1)
        await engine.frontier.exchange(Ask(holder, ["books"], ["bulk"], {"default": ["direct"]}, 1))
    finally:
        await engine.close()
    if kind == "redis":
        packed = "cmsgpack.pack({'holder', 'elsewhere', 1, 1, '/tmp/notes'})"
        redis(url, "EVAL", f"return redis.call('HSET', '{{shoal:0}}:wk', 'holder', {packed})", "0")
    else:
        known = SQLITE_STEPS if kind == "sqlite" else POSTGRES_STEPS
        if kind == "postgresql":
            change(
                url, "ALTER FUNCTION exchange RENAME TO exchange_of_old; ALTER TYPE new_notes RENAME TO notes_of_old"
            )
        for version in range(NEWEST[kind], OLDEST[kind], -1):
            for statement in undone(known[f"migrate_{version}"]):
                change(url, statement)
    set_version(url, OLDEST[kind])


def undone(step: str) -> list[str]:
    """What takes back our steps so far: they add columns, tables and indexes, some in place of a primary key.

    One that does nothing is for functions that have changed.
    """
    if re.sub(r"--.*", "", step).strip() == "SELECT 1;":
        return []
    added = re.findall(r"ALTER TABLE (\w+) ADD COLUMN (\w+)", step)
    made = re.findall(r"CREATE (?:UNIQUE )?(TABLE|INDEX) (\w+)", step)
    assert added or made, f"say here how to take this back:\n{step}"
    drops = [f"DROP {what} IF EXISTS {name}" for what, name in reversed(made)]
    keys = [
        f"ALTER TABLE {table} ADD PRIMARY KEY ({columns})"
        for table, columns in re.findall(r"CREATE INDEX \w+ ON (\w+) \((.*?)\)", step)
        if f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey" in step
    ]
    return [*drops, *keys, *(f"ALTER TABLE {table} DROP COLUMN {column}" for table, column in reversed(added))]


def change(url: str, statement: str) -> None:
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            file.execute(statement)
    else:
        schema = parse_qs(urlsplit(url).query)["schema"][0]
        shared_server().sql(f"SET search_path = {schema}; {statement}", database="shoal")


def shape_of(url: str) -> set[str]:
    """The columns and indexes of a store."""
    if url.startswith("redis"):
        return set()
    if url.startswith("sqlite"):
        columns = "SELECT m.name || '.' || c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c"
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
            return {row[0] for row in file.execute(f"{columns} UNION SELECT name FROM sqlite_schema")}  # noqa: S608
    schema = parse_qs(urlsplit(url).query)["schema"][0]
    columns = f"SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = '{schema}'"  # noqa: S608
    rest = f"SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace"  # noqa: S608
    functions = f"SELECT proname FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace"  # noqa: S608
    return set(shared_server().sql(f"{columns} UNION {rest} UNION {functions}", database="shoal").splitlines())


def shape_of_new(kind: str, folder: Path) -> set[str]:
    (folder / "new").mkdir()
    with empty_store(kind, folder / "new") as url:
        assert shoal("doctor", "--migrate", "--engine", url).returncode == 0
        return shape_of(url)


def test_an_older_store_is_migrated_when_that_is_asked_for_and_not_before(
    kind: str, store: str, tmp_path: Path
) -> None:
    asyncio.run(older_store(kind, store))
    newest = shape_of(store) if kind == "redis" else shape_of_new(kind, tmp_path)
    assert kind == "redis" or shape_of(store) != newest
    refused = shoal("runs", "--engine", store)
    assert refused.returncode == 2
    assert f"was written by an older Shoal (schema {OLDEST[kind]}, this one needs" in refused.stderr
    assert "run `shoal doctor --migrate`" in refused.stderr
    said = at_once(store, 4)
    assert [line.partition(" ")[2] for line in said] == ["['run', 'old']"] * 4, said
    assert shape_of(store) == newest, "as if it had been made today"

    async def look() -> tuple[list[WorkerInfo], dict[str, int]]:
        engine = await open_engine(store)
        try:
            new = WorkerInfo("new", "elsewhere", 1, 1)
            await engine.frontier.exchange(Ask(new, ["books"], ["bulk"], {"default": ["direct"]}, 1))
            return [record.info for record in await engine.reader.workers()], dict(await engine.reader.scrapers())
        finally:
            await engine.close()

    workers, left = asyncio.run(look())
    assert {info.worker_id for info in workers} == {"holder", "new"}
    assert left == {"books": 2}


def test_a_store_that_no_step_leads_from_is_not_touched() -> None:
    with pytest.raises(EngineBroken, match=r"too old to be migrated from \(schema 1, this one needs 3\)"):
        steps("It", 1, 3, {"migrate_3"}, migrate=True)
    assert steps("It", 1, 3, {"migrate_2", "migrate_3"}, migrate=True) == ["migrate_2", "migrate_3"]
    assert steps("It", 3, 3, (), migrate=False) == []


def test_a_run_and_a_worker_may_make_the_store_together(store: str, tmp_path: Path) -> None:
    """A worker that is started before the first run finds an empty store, which is no mistake."""
    (tmp_path / "shop.py").write_text(
        'from shoal import Scraper\nshop = Scraper("shop")\nshop.page(lambda page: None)\n'
    )
    assert script("worker", "shop.py", "--drain", "--engine", store).returncode == 0
    shop = Scraper("shop", mode="distributed")

    @shop.page
    def read(_page: Page) -> None: ...

    assert Orchestrator(shop, engine=store).start(urls=["http://x.example/"]).enqueued == 1

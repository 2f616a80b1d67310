"""How pages ended is forgotten together with the keys of their run, on every engine: nothing is left behind (I10)."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from servers.postgres import shared_server
from servers.redis_stage import Stage
from shoal.core.outcome import Blame, Dropped, Reason
from shoal.core.task import State
from shoal.frontier.open import open_engine
from shoal.testing.contract.runs.jobs import HOUR, JobScene, new_job
from shoal.testing.contract.scene import dead, page, pages, settle
from shoal.testing.contract.tasks.endings import find
from shoal.testing.jump_clock import JumpClock
from support.engine_urls import ENGINES, emptied
from support.moving import move

WHY = Reason(Blame.HANDLER, "sold out")


class Leftovers(JobScene):
    """A scene that can look into its store."""

    url: str

    def endings(self) -> int:
        """How many rows (or, on Redis, keys) there are about how pages ended."""
        if self.url.startswith("sqlite"):
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as file:
                return int(file.execute("SELECT count(*) FROM ending").fetchone()[0])
        if self.url.startswith("postgresql"):
            schema = parse_qs(urlsplit(self.url).query)["schema"][0]
            return int(shared_server().sql(f"SELECT count(*) FROM {schema}.ending", database="shoal"))  # noqa: S608
        words = ("redis-cli", "-p", str(urlsplit(self.url).port), "--scan", "--pattern", "*}:e*:*")
        return len(subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines())


@pytest.fixture(params=ENGINES)
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Leftovers]:
    clock = JumpClock()
    async with emptied(request.param, tmp_path) as url:
        engine = await open_engine(url, clock=clock)
        scene = Leftovers(Stage(engine, clock))
        scene.url = url
        yield scene
        await engine.close()


async def test_what_is_done_leaves_nothing(scene: Leftovers) -> None:
    await scene.open_run(delay=0)
    await scene.put(*pages("a.example", 30), page("a.example/0", key=None))
    await scene.drain()
    assert scene.endings() == 0


async def test_of_jobs_that_expire(scene: Leftovers) -> None:
    await scene.submit(new_job("one", "a.example/0", "a.example/1"), new_job("two", *pages("b.example", 3)))
    first, second, *_ = await scene.claim(2)
    await scene.settle(settle(first, Dropped(WHY)), dead(second))
    await scene.frontier.purge_dead(second.task.run_id)
    await scene.frontier.cancel_run("two")
    await scene.sweep_all()
    await scene.drain()
    assert scene.endings() > 0
    await scene.advance(HOUR)
    await scene.expire_all()
    assert scene.endings() == 0


async def test_of_runs_that_were_moved_and_come_back(scene: Leftovers, tmp_path: Path) -> None:
    """The copy that was left behind gives way, with all its endings."""
    await scene.open_run(delay=0)
    await scene.put(*pages("a.example", 3), page("b.example/0", wait=HOUR))
    await scene.settle(*(settle(lease, Dropped(WHY)) for lease in await scene.claim(1)))
    clock = JumpClock()
    other = await open_engine(f"sqlite:///{tmp_path}/other.db", clock=clock)
    there = JobScene(Stage(other, clock))
    await move(scene, there)
    await scene.sweep_all()
    assert scene.endings() > 1, "what was left behind has ended as cancelled"
    await move(there, scene)
    assert scene.endings() == (2 if scene.url.startswith("redis") else 1), "on Redis, an ending and its reason"
    assert (await find(scene, "a.example/0")).state is State.DROPPED
    assert [(await find(scene, name)).state for name in ("a.example/1", "b.example/0")] == [State.WAITING] * 2
    await scene.drain()
    assert (await find(scene, "a.example/1")).state is State.DONE, "it was cancelled in the copy that is gone"
    await other.close()

"""Why is this URL waiting? Every place that a task can be in, and every cause, on every engine."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from servers.redis_stage import Stage
from shoal.config.settings import Settings
from shoal.core.outcome import Blame, Dropped, Reason
from shoal.core.task import NewTask
from shoal.core.url import dedup_key
from shoal.fetch.robots.cache import RobotsCache
from shoal.frontier.contract.exits import NewExit
from shoal.frontier.contract.frontier import Ask, Duties, Enqueued, WorkerInfo
from shoal.frontier.open import open_engine
from shoal.insight.explain import Explanation
from shoal.insight.look_up import look_up
from shoal.testing.contract.scene import (
    Scene,
    dead,
    done,
    dropped,
    exit_failed,
    given_back,
    page,
    pages,
    retried,
    settle,
    snoozed,
)
from shoal.testing.jump_clock import JumpClock
from support.command_line import shoal
from support.engine_urls import ENGINES, emptied

EXITS = ("127.0.0.2", "127.0.0.3")


def leaving_by(*addresses: str) -> Settings:
    """Settings whose usual pool has these addresses of this machine as exits."""
    return Settings(exits={"default": {"ways": [f"source://{address}" for address in addresses]}})  # type: ignore[dict-item]


TWO_EXITS = leaving_by(*EXITS)


class Explained(Scene):
    """A scene in which one can ask. Its tasks are known by their URLs, as those of real runs are."""

    async def put(self, *tasks: NewTask | str, run: str = "run") -> Enqueued:
        named = [page(task) if isinstance(task, str) else task for task in tasks]
        return await self.frontier.enqueue(run, [replace(task, key=dedup_key(task.url)) for task in named])

    async def ask_about(self, name: str, settings: Settings | None = None) -> Explanation:
        await self.staff("bulk", "priority")
        _, [(_, said)] = await look_up(self.engine, settings or Settings(), f"https://{name}")
        return said

    async def staff(self, *lanes: str) -> None:
        """A worker works these lanes, and has nothing to do now."""
        info = WorkerInfo("w9", "another machine", 1, 1, duties=Duties(("shop",), lanes))
        await self.frontier.exchange(Ask(info, ["shop"], lanes, {"default": ["direct"]}, 0))

    async def wait_of(self, name: str, settings: Settings | None = None) -> tuple[int | None, str]:
        """Milliseconds until it can be fetched at the earliest, and all causes."""
        said = await self.ask_about(name, settings)
        earliest = None if said.earliest is None else said.earliest - await self.now()
        return earliest, " ".join(cause.text for cause in said.causes)


@pytest.fixture(params=ENGINES)
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Explained]:
    clock = JumpClock()
    async with emptied(request.param, tmp_path) as url:
        engine = await open_engine(url, clock=clock)
        yield Explained(Stage(engine, clock))
        await engine.close()


async def test_where_it_is(scene: Explained) -> None:
    """Waiting behind others, leased by somebody, disallowed, never seen."""
    await scene.open_run(delay=1_000)
    await scene.put(*pages("a.example", 4))
    assert (await scene.ask_about("a.example/2")).where == "It waits in the lane bulk; 2 of its site are before it."
    await scene.claim_one(by="w7")
    said = await scene.ask_about("a.example/0")
    assert said.where == "It is being worked on: worker w7, exit direct; the lease ends in 5.0 min."
    said = await scene.ask_about("a.example/1")
    assert said.where == "It waits in the lane bulk; nothing of its site is before it."
    book = RobotsCache(scene.engine.cache, Settings().agent)
    await book.learn("https://d.example", 200, b"User-agent: *\nDisallow: /")
    await scene.put("d.example/1")
    assert "robots.txt disallows it: it will be dropped" in (await scene.wait_of("d.example/1"))[1]
    assert (await look_up(scene.engine, Settings(), "https://z.example/"))[1] == []


async def test_how_it_ended(scene: Explained) -> None:
    """Each in a run that has had every other end as well: nothing is concluded from counters, or from robots.txt."""
    await scene.open_run(delay=0, concurrency=9)
    names = ("done", "dead", "robots", "handler", "wanted")
    await scene.put(*(f"a.example/{name}" for name in names), page("a.example/short", ttl=500))
    leases = dict(zip(names, await scene.claim(5), strict=True))
    await scene.settle(
        done(leases["done"]),
        dead(leases["dead"], Reason(Blame.URL, "HTTP 404")),
        settle(leases["robots"], Dropped(Reason(Blame.POLICY, "robots.txt disallows it"))),
        settle(leases["handler"], Dropped(Reason(Blame.HANDLER, "sold out"))),
        done(leases["wanted"]),
    )
    book = RobotsCache(scene.engine.cache, Settings().agent)
    await book.learn("https://a.example", 200, b"User-agent: *\nDisallow: /wanted")
    await scene.advance(500)
    await scene.sweep_all()
    await scene.put("a.example/late")
    await scene.frontier.cancel_run("run")
    await scene.sweep_all()
    ends = {name: (await scene.ask_about(f"a.example/{name}")).where for name in (*names, "short", "late")}
    short = ends.pop("short")
    assert re.fullmatch(r"It has expired at 20[-0-9T:.]+Z: it waited for longer than its time to live\.", short)
    assert ends == {
        "done": "It is done.",
        "dead": "It is a dead letter after 1 attempt (url): HTTP 404.",
        "robots": "It was dropped: robots.txt disallows it.",
        "handler": "It was dropped by its handler: sold out.",
        "wanted": "It is done.",
        "late": "It was cancelled with its run.",
    }
    await scene.frontier.purge_dead("run")
    said = await scene.ask_about("a.example/dead")
    assert said.where == "It was a dead letter, which has been purged (url): HTTP 404."


async def test_what_it_is_a_duplicate_of(scene: Explained) -> None:
    """Another spelling; credentials are never shown; waiting, leased, dead, dropped and done."""
    await scene.open_run(delay=0)
    secret = NewTask("https://me:secret@a.example/0", "a.example", None)
    await scene.put(secret)
    masked = "https://***@a.example/0"
    assert (await scene.ask_about("me:secret@A.example/0")).duplicate_of == masked
    assert (await scene.ask_about("me:secret@A.example:443/%30#top")).duplicate_of == masked
    assert (await scene.ask_about("me:secret@a.example/0")).duplicate_of is None
    lease = await scene.claim_one()
    assert (await scene.ask_about("me:secret@A.example/0")).duplicate_of == masked
    await scene.settle(dead(lease))
    assert (await scene.ask_about("me:secret@A.example/0")).duplicate_of == masked
    await scene.frontier.requeue_dead("run")
    await scene.settle(dropped(await scene.claim_one()))
    assert (await scene.ask_about("me:secret@A.example:443/%30#top")).where.startswith("It was dropped")
    await scene.put("a.example/1")
    await scene.settle(done(await scene.claim_one()))
    said = await scene.ask_about("A.example:443/1#top")
    assert (said.where, said.duplicate_of) == ("It is done.", "https://a.example/1")
    assert (await scene.ask_about("a.example/1")).duplicate_of is None


async def test_clocks(scene: Explained) -> None:
    """Of the slot, of the site, of the task itself, and those that are before it; the latest decides."""
    await scene.open_run(delay=10_000)
    await scene.put("now.example/0", *pages("a.example", 4))
    assert await scene.wait_of("now.example/0") == (0, "")
    lease = next(lease for lease in await scene.claim(9) if lease.task.site == "a.example")
    await scene.settle(done(lease))
    await scene.advance(1_000)
    wait, why = await scene.wait_of("a.example/1")
    assert (wait, why) == (9_000, "The clock of direct at this site: 9.0 s to go, one request each 10.0 s.")
    wait, why = await scene.wait_of("a.example/3")
    assert wait == 20_000
    assert "2 tasks go first, at 10.0 s each by 1 exit: about 20.0 s." in why
    await scene.open_run("paced", delay=1_000, site_delay=5_000)
    await scene.put(*pages("b.example", 3), run="paced")
    await scene.settle(done(await scene.claim_one(exits=EXITS, queues=["paced"])))
    wait, why = await scene.wait_of("b.example/1", TWO_EXITS)
    assert (wait, why) == (5_000, "The clock of the whole site: 5.0 s to go, one request each 5.0 s over all exits.")
    await scene.open_run("slower", delay=10_000, site_delay=1_000)
    await scene.put(*pages("s.example", 2), run="slower")
    await scene.settle(done(await scene.claim_one(queues=["slower"])))
    wait, why = await scene.wait_of("s.example/1")
    assert (wait, why) == (10_000, "The clock of direct at this site: 10.0 s to go, one request each 10.0 s.")
    await scene.open_run("again", delay=1_000)
    await scene.put("c.example/0", run="again")
    await scene.settle(retried(await scene.claim_one(queues=["again"]), 30_000))
    await scene.advance(500)
    wait, why = await scene.wait_of("c.example/0")
    assert wait == 29_500
    assert "It waits for its own time, after failure number 1: 29.5 s. The clock of direct" in why


async def test_limits_and_exits(scene: Explained) -> None:
    """A rate limit of the slot, with what was said; of the site; exits in quarantine; a pool that has none."""
    await scene.open_run(delay=0, limit_exits=2)
    await scene.put(*pages("a.example", 5), page("far.example/0", pool="far"))
    assert await scene.wait_of("far.example/0") == (None, "Its pool has no exits.")
    limited = await scene.claim_one(exits=EXITS)
    await scene.settle(snoozed(limited, 60_000))
    assert await scene.wait_of("a.example/1") == (0, ""), "by another exit it can go"
    wait, why = await scene.wait_of("a.example/1", leaving_by(limited.exit))
    assert wait == 60_000
    assert f"{limited.exit} backs off from the site: rate limited (HTTP 429); 60.0 s to go." in why
    await scene.settle(snoozed(await scene.claim_one(exits=EXITS), 90_000))
    wait, why = await scene.wait_of("a.example/1", TWO_EXITS)
    assert wait is not None
    assert wait >= 60_000
    assert "The whole site is backing off: rate limited (HTTP 429);" in why
    await scene.put("b.example/0", "b.example/1")
    busy = EXITS[0]
    await scene.engine.exits.put([NewExit(busy, f"source://{busy}", ("default",), 1)])
    held = await scene.claim_one(exits=(busy,))
    _, why = await scene.wait_of("b.example/1", leaving_by(busy))
    assert why == f"{busy} has 1 request in flight over all sites, and may not have more."
    await scene.settle(given_back(held))
    for _ in range(6):
        await scene.settle(exit_failed(await scene.claim_one(exits=EXITS)))
    wait, why = await scene.wait_of("b.example/0", TWO_EXITS)
    assert wait == 30_000
    assert "None of its 2 exits is free. The first will be: 127.0.0.2 is quarantined after 3 failures; 30.0 s" in why


async def test_nobody_comes_for_it(scene: Explained) -> None:
    """A paused run, alone or in a queue with others; a lane that no live worker works."""
    for queue in (None, "shared"):
        await scene.open_run(f"paused {queue}", queue=queue)
        await scene.put(f"{queue}.example/0".lower(), run=f"paused {queue}")
        await scene.frontier.pause_run(f"paused {queue}")
        assert await scene.wait_of(f"{queue}.example/0".lower()) == (None, "Its run is paused.")
    await scene.open_run()
    await scene.put(page("a.example/0", lane="files"), "b.example/0")
    assert await scene.wait_of("a.example/0") == (None, "No live worker works on shop in the lane files.")
    assert await scene.wait_of("b.example/0") == (0, "")
    await scene.advance(60_000)
    _, [(_, said)] = await look_up(scene.engine, Settings(), "https://b.example/0")
    assert said.earliest is None, "a worker that has not been heard of for a minute does not live"


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.py").write_text(
        "from shoal import Scraper\nx = Scraper('x', start='http://a.example/b', mode='distributed')\n"
        "x.page(lambda page: None)\n"
    )
    assert shoal("run", "x.py").returncode == 0
    said = shoal("explain", "HTTP://a.example:80/%62#c")
    assert said.returncode == 0
    assert "It waits in the lane bulk; nothing of its site is before it." in said.stdout
    assert "No live worker works on x in the lane bulk." in said.stdout
    assert "At the earliest: when that is changed." in said.stdout
    assert "It is a duplicate of http://a.example/b: what differs only in spelling" in said.stdout
    [told] = json.loads(shoal("explain", "http://a.example/b#c", "--json").stdout)
    assert (told["state"], told["duplicate_of"], told["ended_at"]) == ("waiting", "http://a.example/b", None)
    unknown = shoal("explain", "http://a.example/c")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "No run has seen http://a.example/c." in unknown.stderr
    wrong = shoal("explain", "a.example/c")
    assert wrong.returncode == 2
    assert len(wrong.stderr.splitlines()) == 1


async def test_it_says_which_run_has_set_the_delay_that_holds(scene: Explained) -> None:
    await scene.open_run("run", delay=100)
    await scene.open_run("strict", delay=5_000)
    await scene.put("a.example/1", "a.example/2")
    await scene.put("a.example/s", run="strict")
    await scene.settle(done(await scene.claim_one(queues=("run",))))
    _, causes = await scene.wait_of("a.example/2")
    assert "The site has 5.0 s between requests, as run strict asked for, not 100 ms as its own run" in causes
    await scene.frontier.cancel_run("strict")
    await scene.sweep_all()
    _, causes = await scene.wait_of("a.example/2")
    assert "strict" not in causes
    assert "5.0 s" not in causes

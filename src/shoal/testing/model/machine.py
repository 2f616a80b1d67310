"""Random histories of an engine, each step compared with `FrontierModel`: what Hypothesis finds, it shrinks.

Plug in an engine by a subclass that opens it, and hand `TestCase` to pytest:

    class MyMachine(FrontierMachine):
        async def open_harness(self) -> Harness: ...
        async def close_harness(self, harness: Harness) -> None: ...

    TestMyModel = MyMachine.TestCase
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence, Set
from hashlib import sha256
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from shoal.core.clock import Millis, Moment
from shoal.core.outcome import Blame, Dead, Done, Dropped, Outcome, Reason, Retried, Settlement, Snoozed
from shoal.core.politeness import QUIET
from shoal.core.task import DEFAULT_POOL, Extra, LanePolicy, Lease, NewTask, Policy, RunState, State
from shoal.errors import UsageError
from shoal.frontier.contract.frontier import Ask, NewRun, Renewal
from shoal.testing.contract.harness import Harness
from shoal.testing.contract.scene import SHOP, Scene, worker
from shoal.testing.model.model import FrontierModel
from shoal.testing.model.parts import ModelRun

Answer = TypeVar("Answer")

QUEUES = {"alone": None, "other": None, "first": "shared", "second": "shared"}
"""The runs of every history, and the queues they are in."""
SITES = ("a.example", "b.example", "c.example")
LANES = ("bulk", "files", "fast")
EXITS = ("one", "two")
LEASE: Millis = 10_000
REASON = Reason(Blame.URL, "404 Not Found")
LANE_POLICIES = {"files": LanePolicy(ttl=15_000), "fast": LanePolicy(auto_ack=True)}

runs = st.sampled_from(tuple(QUEUES))
policies = st.builds(
    Policy,
    delay=st.sampled_from((0, 100, 1_000)),
    site_delay=st.sampled_from((0, 0, 0, 300)),
    concurrency=st.sampled_from((1, 1, 2, 3)),
    lease=st.just(LEASE),
    hard_timeout=st.sampled_from((0, 3_000)),
    crashes=st.just(2),
    lanes=st.just(LANE_POLICIES),
    limit_exits=st.sampled_from((1, 2, 2, 3)),
    limit_window=st.sampled_from((1_000, 60_000)),
)
batches = st.lists(
    st.tuples(
        st.sampled_from(SITES),
        st.sampled_from(LANES),
        st.sampled_from((0, 0, 0, 1)),  # priority
        st.sampled_from((0, 0, 0, 700)),  # wait
        st.sampled_from((None, None, 2_000)),  # ttl
        st.sampled_from((None, *range(12))),  # key: None = none, otherwise one of few, so that some come twice
    ),
    min_size=1,
    max_size=4,
)
endings = st.sampled_from(
    (
        "done",
        "done",
        "done",
        "links",
        "retry",
        "snooze",
        "aside",
        "back",
        "on its way",
        "dead",
        "dead anew",
        "drop",
        "wrong token",
        "wrong run",
    )
)
settlements = st.lists(
    st.tuples(
        st.integers(0, 9),  # which lease, newest first; some have ended before
        endings,
        st.sampled_from(("early", "late", "never")),  # when its request began
        st.sampled_from((None, None, None, 0, 500)),  # crawl delay
        st.sampled_from((None, None, None, None, 0, 700)),  # pace
    ),
    max_size=4,
)


class FrontierMachine(RuleBasedStateMachine):
    """Runs, workers, time and operators, in any order."""

    async def open_harness(self) -> Harness:
        """An engine on an empty store, on a clock that can be moved."""
        raise NotImplementedError

    async def close_harness(self, harness: Harness) -> None:
        """Let go of it."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.harness = self.wait_for(self.open_harness())
        self.scene = Scene(self.harness)
        self.model = FrontierModel(EXITS)
        self.history: list[Lease] = []
        self.number = 0
        self.wake_at: Moment | None = None
        self.now: Moment = self.wait_for(self.scene.now())

    def wait_for(self, what: Coroutine[Any, Any, Answer]) -> Answer:
        return self.runner.run(what)

    def advance(self, ms: Millis) -> None:
        self.wait_for(self.harness.advance(ms))
        self.now += ms

    @initialize(chosen=st.tuples(*(policies for _ in QUEUES)))
    def create_runs(self, chosen: Sequence[Policy]) -> None:
        for (run_id, queue), policy in zip(QUEUES.items(), chosen, strict=True):
            self.wait_for(self.scene.frontier.create_run(NewRun(run_id, SHOP, policy, queue=queue)))
            self.model.runs[run_id] = ModelRun(run_id, queue or run_id, policy)

    @rule(run_id=runs, batch=batches)
    def enqueue(self, run_id: str, batch: Sequence[tuple[str, str, int, int, int | None, int | None]]) -> None:
        run = self.model.runs[run_id]
        tasks = [self.new_task(*each) for each in batch]
        if run.state is RunState.CANCELLED:
            try:
                self.wait_for(self.scene.frontier.enqueue(run_id, tasks))
            except UsageError:
                return
            raise AssertionError("a cancelled run took tasks")
        answer = self.wait_for(self.scene.frontier.enqueue(run_id, tasks))
        accepted = self.model.enqueue(run, tasks, self.now)
        assert (answer.accepted, answer.duplicates) == (accepted, len(tasks) - accepted)
        self.compare()

    def new_task(
        self, site: str, lane: str, priority: int, wait: Millis, ttl: Millis | None, key: int | None
    ) -> NewTask:
        self.number += 1
        digest = None if key is None else sha256(str(key).encode()).digest()
        return NewTask(f"https://{site}/{self.number}", site, digest, lane, None, priority, 0, wait, ttl)

    @rule(
        by=st.sampled_from(("w1", "w2", "w3")),
        want=st.integers(0, 5),
        lanes=st.sampled_from((LANES, LANES, ("bulk",), ("fast", "files"))),
        queues=st.sampled_from((None, None, ("shared",), ("alone", "other"))),
        ahead=st.sampled_from((0, 0, 0, 50, 1_500)),
        chosen=settlements,
        heard=st.one_of(st.none(), st.none(), st.sets(st.integers(0, 9))),  # None = does not say what it holds
    )
    def exchange(
        self,
        by: str,
        want: int,
        lanes: Sequence[str],
        queues: Sequence[str] | None,
        ahead: Millis,
        chosen: Sequence[tuple[int, str, str, Millis | None, Millis | None]],
        heard: Set[int] | None,
    ) -> None:
        now = self.now
        brought = [self.settlement(*each, now) for each in chosen] if self.history else []
        held = None if heard is None else [lease.token for back, lease in enumerate(self.history) if back % 10 in heard]
        ask = Ask(worker(by), (SHOP,), lanes, {DEFAULT_POOL: EXITS}, want, queues, brought, ahead, held)
        granted = self.wait_for(self.scene.frontier.exchange(ask))
        assert granted.now == now
        late = self.model.settle([*brought, *self.model.lost_grants(ask)], now)
        assert sorted(granted.late) == sorted(late), "I2"
        self.model.expire(now)
        assert len(granted.leases) <= want
        lazy = self.model.has_lazy_tasks()
        for lease in granted.leases:
            self.model.grant(ask, lease, now)
            self.history.append(lease)
        self.compare()
        self.model.check_answer(ask, granted, now, lazy=lazy)
        self.check_left(ask, granted.left)
        self.wake_at = granted.wake_at

    def settlement(
        self, back: int, ending: str, began: str, crawl_delay: Millis | None, pace: Millis | None, now: Moment
    ) -> Settlement:
        lease = self.history[-1 - back % len(self.history)]
        token, run_id = lease.token, lease.task.run_id
        if ending == "wrong token":
            token ^= 1
        if ending == "wrong run":
            run_id = "other" if run_id == "alone" else "alone"
        started = None
        if began != "never" and ending != "back" and now >= lease.start_at:
            latest = now if lease.exclusive else min(now, lease.start_by)
            started = lease.start_at if began == "early" else latest
        outcome = self.outcome(ending, lease)
        made = 0 if started is None else 1
        return Settlement(run_id, lease.task.id, token, outcome, started, made, 100 * made, 1, 2, crawl_delay, pace)

    def outcome(self, ending: str, lease: Lease) -> Outcome:
        match ending:
            case "links":
                links = [self.new_task(site, "bulk", 0, 0, None, key) for site, key in zip(SITES, (None, 3, 3))]  # noqa: B905
                return Done((b"{}",), tuple(links), lease.task.url)
            case "retry":
                return Retried(1_500, REASON)
            case "snooze":
                return Snoozed(2_500, 2, REASON)
            case "aside":
                return Snoozed(1_000, 1, REASON, Extra(limits=lease.task.extra.limits + 1), 1_600)
            case "back":
                return Snoozed()
            case "on its way":
                return Snoozed(extra=Extra(halfway=True))
            case "dead":
                return Dead(REASON)
            case "dead anew":
                return Dead(REASON, Extra())
            case "drop":
                return Dropped(REASON)
            case _:
                return Done((b"{}", b'{"n":1}'), (), lease.task.url)

    @rule(chosen=st.lists(st.integers(0, 9), max_size=4))
    def renew(self, chosen: Sequence[int]) -> None:
        """Which rules can be drawn does not depend on what the engine answered: Hypothesis would call itself flaky."""
        if not self.history:
            return
        picked = {lease.token: lease for lease in (self.history[-1 - n % len(self.history)] for n in chosen)}
        pairs = [(lease.task.id, lease.token) for lease in picked.values()]
        now = self.now
        lost = self.wait_for(self.scene.frontier.renew(worker(), [Renewal(*pair) for pair in pairs]))
        assert sorted(lost) == sorted(self.model.renew(pairs, now))

    @rule()
    def sweep(self) -> None:
        now = self.now
        swept = self.wait_for(self.scene.frontier.sweep())
        assert (swept.returned, swept.buried) == self.model.sweep(now), "I5"
        assert not swept.more
        self.compare()

    @rule(ms=st.sampled_from((1, 20, 99, 100, 300, 999, 1_000, 4_000, LEASE, QUIET)))
    def jump(self, ms: Millis) -> None:
        self.advance(ms)

    @rule(early=st.booleans())
    def jump_to_wake_up(self, early: bool) -> None:
        if self.wake_at is None:
            return
        self.advance(max(0, self.wake_at - early - self.now))

    @rule(run_id=runs)
    def pause(self, run_id: str) -> None:
        run = self.model.runs[run_id]
        self.wait_for(self.scene.frontier.pause_run(run_id))
        if run.state not in (RunState.FINISHED, RunState.CANCELLED):
            run.state = RunState.PAUSED
        self.compare()

    @rule(run_id=runs)
    def resume(self, run_id: str) -> None:
        run = self.model.runs[run_id]
        self.wait_for(self.scene.frontier.resume_run(run_id))
        if run.state is RunState.PAUSED:
            run.state = RunState.RUNNING if run.sealed else RunState.OPEN
        self.compare()

    @rule(run_id=runs)
    def seal(self, run_id: str) -> None:
        run = self.model.runs[run_id]
        self.wait_for(self.scene.frontier.seal_run(run_id))
        run.sealed = True
        if run.state is RunState.OPEN:
            run.state = RunState.RUNNING
        self.compare()

    @rule(run_id=runs, sure=st.integers(0, 3))
    def cancel(self, run_id: str, sure: int) -> None:
        run = self.model.runs[run_id]
        if sure:  # so that not every history ends early
            return
        self.wait_for(self.scene.frontier.cancel_run(run_id))
        if run.state is not RunState.FINISHED:
            run.state = RunState.CANCELLED
        self.compare()

    @rule(run_id=runs)
    def requeue_dead(self, run_id: str) -> None:
        run = self.model.runs[run_id]
        if run.state is not RunState.CANCELLED:
            answer = self.wait_for(self.scene.frontier.requeue_dead(run_id))
            assert answer == self.model.requeue(run)
            self.compare()

    def look_for_all(self) -> None:
        """Where each task is, or how it ended, is what the model knows of it."""
        for task in self.model.tasks:
            if task.key is not None:
                look = self.scene.reader.whereabouts(task.site, task.url, task.key, task.run.run_id)
                [found] = self.wait_for(look)
                assert found.state in self.model.states(task, self.now), task
                assert found.state is not State.DROPPED or found.reason == REASON

    def compare(self) -> None:
        """I7 after every step: the counters of the engine are those of the model."""
        self.model.finish()
        sites = self.wait_for(self.scene.reader.sites())
        self.model.end_doomed({site.site: site.waiting + site.leased for site in sites})
        for found in self.wait_for(self.scene.reader.runs()):
            run = self.model.runs[found.run_id]
            assert found.state == run.state
            seen = {name: getattr(found.counters, name) for name in found.counters.__struct_fields__}
            expected = {name: run.counts[name] for name in seen}
            if run.state is RunState.CANCELLED:  # whether what waited was cancelled or expired first, it has ended
                for counts in (seen, expected):
                    counts["ended"] = counts.pop("waiting") + counts.pop("expired") + counts.pop("cancelled")
            assert seen == expected, found.run_id

    def check_left(self, ask: Ask, left: int) -> None:
        sure = sum(self.model.is_wanted(task) for task in self.model.asked_for(ask))
        for held in self.model.leases:
            sure += held.task.lane in ask.lanes and (ask.queues is None or held.task.run.queue in ask.queues)
        doomed = sum(task.state is State.WAITING and not self.model.is_wanted(task) for task in self.model.tasks)
        assert sure <= left <= sure + doomed, "`left` is not what waits and what is leased"

    def teardown(self) -> None:
        try:
            if self.model.runs:
                self.look_for_all()
                self.wait_for(self.come_to_rest())
        finally:
            self.wait_for(self.close_harness(self.harness))
            self.runner.close()

    async def come_to_rest(self) -> None:
        """Resume, drain and recount: every accepted task has ended in exactly one way (I1, I7)."""
        scene = self.scene
        accepted = {run.run_id: run.counters.accepted for run in await scene.reader.runs()}
        for run_id in QUEUES:
            await scene.frontier.resume_run(run_id)
        everything = {"lanes": LANES, "exits": EXITS}
        for _ in range(4):  # leases that were never settled run out, and what comes back may be lost once more
            await scene.drain(**everything)
            await scene.advance(LEASE)
            await scene.sweep_all()
        await scene.drain(**everything)
        assert (await scene.exchange(want=0, **everything)).left == 0
        for run_id in QUEUES:
            counts = (await scene.reader.run(run_id)).counters
            assert counts.remaining == 0, f"I1: {counts}"
            assert counts.accepted == accepted[run_id], f"I1: {counts}"
        await scene.check_books()

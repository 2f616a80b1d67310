"""Histories written by hand, for tests of the checker: what each process asked, and what it was answered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.core.outcome import Done, Outcome, Settlement
from shoal.core.task import NO_EXTRA, Lease, NewTask, Policy, RunState, Task
from shoal.frontier.contract.frontier import Ask, Counters, Enqueued, Granted, Renewal, Run, Swept, WorkerInfo
from shoal.frontier.contract.reader import DeadLetter, Item
from shoal.frontier.recording import Offer, Renewals
from shoal.testing.access_log import AccessEntry, AccessLog
from shoal.testing.history import Disturbance, Evidence, History, RecordedCall, Verdict, check

RUN = "run"
LEASE = 3000
DELAY = 200
SITE = "a.example"
POLICY = Policy(delay=DELAY, lease=LEASE, hard_timeout=1000)
TAKES = 2
"""Milliseconds from each call to its answer."""


def page(number: int, site: str = SITE) -> str:
    return f"http://{site}/{number}"


def new_task(number: int, site: str = SITE, **options: Any) -> NewTask:
    return NewTask(page(number, site), site, number.to_bytes(32), **options)


def item(number: int) -> bytes:
    return msgspec.json.encode({"page": number})


@dataclass
class Story:
    """A history in the making. `at` moves on with each call unless a moment is given."""

    at: int = 1_000_000
    calls: list[RecordedCall] = field(default_factory=list)
    disturbances: list[Disturbance] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    dead: list[DeadLetter] = field(default_factory=list)
    starts: list[tuple[str, float]] = field(default_factory=list)
    tokens: int = 0

    def call(self, pid: int, verb: str, given: object, answer: object, *, heard: bool = True) -> RecordedCall:
        answered = self.at + TAKES if heard else None
        made = RecordedCall(str(pid), pid, verb, self.at, given, answer if heard else None, answered, answered)
        self.calls.append(made)
        self.at += TAKES + 1
        return made

    def later(self, ms: int) -> Story:
        self.at += ms
        return self

    def enqueue(self, *tasks: NewTask, heard: bool = True) -> None:
        self.call(1, "enqueue", Offer(RUN, tasks), Enqueued(len(tasks), 0), heard=heard)

    def exchange(
        self,
        pid: int = 1,
        *settled: Settlement,
        leases: Sequence[Lease] = (),
        late: Sequence[int] = (),
        want: int = 10,
        heard: bool = True,
    ) -> None:
        ask = Ask(_worker(pid), ["s"], ["bulk"], {"default": ["direct"]}, want, settlements=settled)
        self.call(pid, "exchange", ask, Granted(leases, self.at + 1, None, 1, late), heard=heard)

    def lease(self, number: int, site: str = SITE, *, start_at: int | None = None, **options: Any) -> Lease:
        """A lease that the next exchange may grant. The number of the task is that of its page."""
        self.tokens += 1
        task = Task(number, RUN, "s", page(number, site), site, "bulk", None, 0, 0, 0, 0, NO_EXTRA)
        now = self.at + 1
        start = now if start_at is None else start_at
        return Lease(task, self.tokens, "direct", now, start, start + LEASE // 2, now + LEASE, DELAY, True)

    def grant(self, number: int, pid: int = 1, site: str = SITE, **options: Any) -> Lease:
        lease = self.lease(number, site, **options)
        self.exchange(pid, leases=[lease])
        return lease

    def settle(self, lease: Lease, outcome: Outcome | None = None, pid: int = 1, **how: Any) -> None:
        """Done with one item, unless told otherwise. The request was started half-way."""
        done = Done((item(lease.task.id),)) if outcome is None else outcome
        self.exchange(pid, self.settlement(lease, done), **how)
        if isinstance(done, Done) and how.get("heard", True) and lease.token not in how.get("late", ()):
            self.items += [Item(lease.task.url, None, msgspec.Raw(body)) for body in done.items]

    def settlement(self, lease: Lease, outcome: Outcome) -> Settlement:
        return Settlement(RUN, lease.task.id, lease.token, outcome, lease.start_at, 1)

    def renew(self, lease: Lease, pid: int = 1, *, lost: bool = False, heard: bool = True) -> None:
        given = Renewals(_worker(pid), [Renewal(lease.task.id, lease.token)])
        self.call(pid, "renew", given, [lease.token] if lost else [], heard=heard)

    def sweep(self) -> None:
        self.call(1, "sweep", None, Swept())

    def kill(self, pid: int) -> None:
        self.disturbances.append(Disturbance(self.at, self.at + 1, "kill", pid))
        self.at += 2

    def crawl(self, *numbers: int, site: str = SITE, pid: int = 1) -> Story:
        """Pages that are accepted, granted and settled in order, one delay apart."""
        self.enqueue(*(new_task(number, site) for number in numbers))
        for number in numbers:
            lease = self.grant(number, pid, site)
            self.later(20).settle(lease, pid=pid)
            self.later(DELAY)
        return self

    def evidence(self, counters: dict[str, int] | None = None, **options: Any) -> Evidence:
        """All of it. The counters are the truth, with what is given laid over it."""
        made = self._counted()
        made.update(counters or {})
        ended = self.at
        run = Run(RUN, "s", "distributed", options.pop("state", RunState.FINISHED), RUN,
                  options.pop("policy", POLICY), None, 1, ended, Counters(**made))  # fmt: skip
        target = AccessLog(
            AccessEntry(number, at, "127.0.0.1", "127.0.0.1", "GET", host, "/", "x", at, 200)
            for number, (host, at) in enumerate(self.starts)
        )
        return Evidence(History(self.calls, self.disturbances), run, self.items, self.dead, target, **options)

    def verdict(self, counters: dict[str, int] | None = None, **options: Any) -> Verdict:
        return check(self.evidence(counters, **options))

    def _counted(self) -> dict[str, int]:
        counted = {"done": 0, "retries": 0, "dropped": 0, "requests": 0, "late": 0}
        names = {"Done": "done", "Retried": "retries", "Dropped": "dropped"}
        for call in self.calls:
            if call.verb != "exchange" or call.doubtful:
                continue
            for settlement in call.given.settlements:
                if settlement.token in call.answer.late:
                    counted["late"] += 1
                    continue
                name = names.get(type(settlement.outcome).__name__)
                if name:
                    counted[name] += 1
                counted["requests"] += settlement.requests
        return {**counted, "items": len(self.items), "dead": len(self.dead)}


def _worker(pid: int) -> WorkerInfo:
    return WorkerInfo(f"worker-{pid}", "machine", pid, 0)


def broken(verdict: Verdict) -> set[str]:
    """The rules that were broken."""
    return {breach.rule for breach in verdict.breaches}

"""Group commit: submissions of many clients share a transaction. None is answered before it is durable.

Clients come into groups in turn (fair queueing). A large job has a group of its own, and between two of them small ones
are committed: whoever submits little waits for one large job at most, however many others bring.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass

import structlog

from shoal.core import log_events
from shoal.core.clock import Clock
from shoal.core.storable import cleaned
from shoal.errors import Unstorable
from shoal.frontier.contract.jobs import Jobs, NewJob, Submitted
from shoal.gateway.http.answer import Problem, unavailable
from shoal.gateway.limits.fair_queue import FairQueue
from shoal.gateway.limits.store_breaker import StoreBreaker, away
from shoal.gateway.options import GatewayOptions

TASKS_AT_ONCE = 20_000
LARGE = 1000
"""Tasks that make a job large."""

SECONDS_A_TASK = 0.0003
"""How much longer than usual a store may take for each task of a large job, before it is taken to be away."""

MOST_LARGE = 64
"""Large jobs that wait for their transaction."""

log = structlog.get_logger("shoal")

GROUP_WITHIN = 0.5
"""The share of a client's patience within which a submission must have come into a group. So the rest is left for the
commit, and few are told that they came too late and are stored all the same."""


@dataclass(slots=True)
class _Submission:
    client: str
    job: NewJob
    future: asyncio.Future[Submitted]
    until: float
    over: asyncio.TimerHandle | None = None

    def stop_waiting(self) -> None:
        if self.over is not None:
            self.over.cancel()

    def fail(self, problem: Problem) -> None:
        if not self.future.done():
            self.future.set_exception(problem)


class GroupCommit:
    """While one group is being committed, the next gathers."""

    def __init__(
        self,
        jobs: Jobs,
        breaker: StoreBreaker,
        options: GatewayOptions,
        clock: Clock,
    ) -> None:
        self._jobs = jobs
        self._breaker = breaker
        self._patience = options.store_patience
        self._clock = clock
        self._at_once = options.commit_at_once
        self._waiting: FairQueue[_Submission] = FairQueue(options.max_submissions)
        self._large: FairQueue[_Submission] = FairQueue(MOST_LARGE)
        self._large_next = False
        self._allowance = 0.0
        self._for_commit = (1 - GROUP_WITHIN) * options.store_patience
        self._some = asyncio.Event()
        self._committing_since = math.inf

    def check(self, client: str | None = None) -> None:
        """Raise Problem 503 if a submission made now would not be answered in time. `client`: None = not known yet."""
        self._breaker.check()
        if self._seconds() - self._committing_since > self._patience + self._allowance:
            raise away()
        if client is not None and not self._waiting.has_room(client):
            raise _overloaded()

    async def submit(self, job: NewJob, client: str = "") -> Submitted:
        """What became of the job, when that is durable. Raises Problem 503 if it cannot be told in time.

        Then a job that still waited for its group is not created; one whose group was under way may have been.
        """
        self.check(client)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Submitted] = loop.create_future()
        allowed = self._patience + _allowance(job)
        submission = _Submission(client, job, future, self._seconds() + allowed)
        submission.over = loop.call_later(allowed - self._for_commit, self._tired_of_waiting, submission)
        line = self._large if len(job.tasks) > LARGE else self._waiting
        superfluous = line.put(client, submission)
        if superfluous is not None:
            superfluous.fail(_overloaded())
        self._some.set()
        try:
            return await future
        finally:
            submission.stop_waiting()

    async def run(self) -> None:
        """Commit group after group, until cancelled."""
        while True:
            await self._some.wait()
            group = self._next_group()
            if not self._waiting and not self._large:
                self._some.clear()
            if group:
                await self._commit(group)

    def _next_group(self) -> list[_Submission]:
        """One large job, or many small ones: in turn, where there are both."""
        line = self._large if self._large and (self._large_next or not self._waiting) else self._waiting
        self._large_next = line is self._waiting
        most = self._at_once if line is self._waiting else 1
        loop = asyncio.get_running_loop()
        group: list[_Submission] = []
        tasks = 0
        while len(group) < most and tasks < TASKS_AT_ONCE and (found := line.take()) is not None:
            _, submission = found
            if not submission.future.done():
                submission.stop_waiting()
                left = max(submission.until - self._seconds(), self._for_commit)
                submission.over = loop.call_later(left, _give_up, submission.future)
                group.append(submission)
                tasks += len(submission.job.tasks)
        return group

    def _tired_of_waiting(self, submission: _Submission) -> None:
        """It has waited for its group for long enough; unless it is for a large job, which takes its time."""
        left = self._committing_since + self._for_commit + self._allowance - self._seconds()
        if self._allowance and left > 0:
            submission.over = asyncio.get_running_loop().call_later(left, self._tired_of_waiting, submission)
        else:
            _give_up(submission.future)

    async def _commit(self, group: list[_Submission]) -> None:
        """Never two at a time, and never given up: where the store does not answer, one group is in doubt, not many."""
        self._committing_since = self._seconds()
        self._allowance = max(_allowance(submission.job) for submission in group)
        try:
            await self._store(group)
        finally:
            self._committing_since, self._allowance = math.inf, 0.0

    async def _store(self, group: list[_Submission]) -> None:
        """One transaction for all; where the store refuses that, halves of it, until the one that it refuses is alone:
        its client is told, and the others are stored."""
        jobs = [submission.job for submission in group]
        try:
            answers = await self._breaker.ask_patiently(lambda: self._jobs.submit(jobs))
        except Problem as problem:
            for submission in group:
                submission.fail(problem)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to one of these, and not to this loop
            if len(group) > 1:
                middle = len(group) // 2
                await self._store(group[:middle])
                await self._store(group[middle:])
            else:
                group[0].fail(_refused(jobs[0], error))
        else:
            for submission, answer in zip(group, answers, strict=True):
                if not submission.future.done():
                    submission.future.set_result(answer)

    def _seconds(self) -> float:
        return self._clock.elapsed() / 1000


def _allowance(job: NewJob) -> float:
    """How much longer a store may take for this job than for most."""
    return SECONDS_A_TASK * len(job.tasks) if len(job.tasks) > LARGE else 0.0


def _overloaded() -> Problem:
    return unavailable("overloaded", "More jobs are being submitted than can be stored at the moment.", 2)


def _refused(job: NewJob, error: Exception) -> Problem:
    log.error(log_events.SUBMISSION_UNSTORABLE, job=job.run.run_id, reason=cleaned(error), exc_info=error)
    if isinstance(error, Unstorable):
        return Problem(422, "unstorable", "The store of this service does not hold what this job is made of.")
    return Problem(500, "internal-error", "This should not have happened. It has been logged.")


def _give_up(future: asyncio.Future[Submitted]) -> None:
    if not future.done():
        future.set_exception(unavailable("overloaded", "The job could not be stored in time. Submit it again.", 2))

"""Group commit: submissions of many clients share a transaction. None is answered before it is durable."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass

import structlog

from shoal.core import log_events
from shoal.core.clock import Clock
from shoal.core.storable import cleaned
from shoal.errors import Unstorable
from shoal.frontier.contract.jobs import Jobs, NewJob, Submitted
from shoal.gateway.http.answer import Problem, unavailable
from shoal.gateway.limits.store_breaker import StoreBreaker, away
from shoal.gateway.options import GatewayOptions

TASKS_AT_ONCE = 20_000

log = structlog.get_logger("shoal")

GROUP_WITHIN = 0.5
"""The share of a client's patience within which a submission must have come into a group. So the rest is left for the
commit, and few are told that they came too late and are stored all the same."""


@dataclass(slots=True)
class _Submission:
    job: NewJob
    future: asyncio.Future[Submitted]
    until: float
    over: asyncio.TimerHandle

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
        self._most = options.max_submissions
        self._waiting: deque[_Submission] = deque()
        self._some = asyncio.Event()
        self._committing_since = math.inf

    def check(self) -> None:
        """Raise Problem 503 if a submission made now would not be answered in time."""
        self._breaker.check()
        if self._seconds() - self._committing_since > self._patience:
            raise away()
        if len(self._waiting) >= self._most:
            raise unavailable("overloaded", "More jobs are being submitted than can be stored at the moment.", 2)

    async def submit(self, job: NewJob) -> Submitted:
        """What became of the job, when that is durable. Raises Problem 503 if it cannot be told in time.

        Then a job that still waited for its group is not created; one whose group was under way may have been.
        """
        self.check()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Submitted] = loop.create_future()
        over = loop.call_later(GROUP_WITHIN * self._patience, _give_up, future)
        submission = _Submission(job, future, self._seconds() + self._patience, over)
        self._waiting.append(submission)
        self._some.set()
        try:
            return await future
        finally:
            submission.over.cancel()

    async def run(self) -> None:
        """Commit group after group, until cancelled."""
        while True:
            await self._some.wait()
            group = self._next_group()
            if not self._waiting:
                self._some.clear()
            if group:
                await self._commit(group)

    def _next_group(self) -> list[_Submission]:
        loop = asyncio.get_running_loop()
        group: list[_Submission] = []
        tasks = 0
        while self._waiting and len(group) < self._at_once and tasks < TASKS_AT_ONCE:
            submission = self._waiting.popleft()
            if not submission.future.done():
                submission.over.cancel()
                submission.over = loop.call_later(submission.until - self._seconds(), _give_up, submission.future)
                group.append(submission)
                tasks += len(submission.job.tasks)
        return group

    async def _commit(self, group: list[_Submission]) -> None:
        """Never two at a time, and never given up: where the store does not answer, one group is in doubt, not many."""
        self._committing_since = self._seconds()
        try:
            await self._store(group)
        finally:
            self._committing_since = math.inf

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


def _refused(job: NewJob, error: Exception) -> Problem:
    log.error(log_events.SUBMISSION_UNSTORABLE, job=job.run.run_id, reason=cleaned(error), exc_info=error)
    if isinstance(error, Unstorable):
        return Problem(422, "unstorable", "The store of this service does not hold what this job is made of.")
    return Problem(500, "internal-error", "This should not have happened. It has been logged.")


def _give_up(future: asyncio.Future[Submitted]) -> None:
    if not future.done():
        future.set_exception(unavailable("overloaded", "The job could not be stored in time. Submit it again.", 2))

"""Versions of jobs: each step of a life and each ended task is another one, and parts make the whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.task import RunState
from shoal.frontier.contract.frontier import Counters
from shoal.frontier.contract.jobs import JobState
from shoal.frontier.shared.job_status import StoredJob, may_have_expired, newest_first, version_of, whole_version

WAITING = Counters(waiting=2)
LIVES = [
    (RunState.RUNNING, WAITING, False),
    (RunState.RUNNING, Counters(waiting=1, leased=1), False),
    (RunState.PAUSED, WAITING, False),
    (RunState.FINISHED, Counters(done=2), False),
    (RunState.CANCELLED, Counters(cancelled=2), False),
    (RunState.FINISHED, Counters(done=2), True),
]


def stored(number: int, state: str = "running") -> StoredJob:
    return StoredJob(f"j{number}", number, 0, "shop", "owner", state, 1, None, None, 1, b'["milk"]', 1, None, 0)


def test_each_step_and_each_ended_task_is_another_version() -> None:
    versions = [version_of(state, counters, expired=expired) for state, counters, expired in LIVES]
    versions.append(version_of(RunState.RUNNING, Counters(waiting=1, done=1), expired=False))
    assert len({*versions}) == len(versions)


@pytest.mark.parametrize(("state", "counters", "expired"), LIVES)
def test_only_what_has_ended_expires_by_time_alone(state: RunState, counters: Counters, expired: bool) -> None:
    ended = state in (RunState.FINISHED, RunState.CANCELLED) and not expired
    assert may_have_expired(version_of(state, counters, expired=expired)) == ended


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=5))
def test_parts_make_the_whole(parts: list[tuple[int, int]]) -> None:
    counted = [Counters(done=done, waiting=waiting, requests=done) for done, waiting in parts]
    whole = Counters(
        done=sum(it.done for it in counted),
        waiting=sum(it.waiting for it in counted),
        requests=sum(it.requests for it in counted),
    )
    versions = [version_of(RunState.RUNNING, each, expired=False) for each in counted]
    assert whole_version(versions) == version_of(RunState.RUNNING, whole, expired=False)


def test_a_stored_job_is_read_with_its_groups_and_state() -> None:
    status = stored(1, "paused").status(WAITING)
    assert (status.groups, status.run_state, status.expired) == (("milk",), RunState.PAUSED, False)
    assert status.state is JobState.QUEUED


def test_jobs_are_listed_newest_first() -> None:
    statuses = newest_first(stored(number).status(WAITING) for number in (2, 3, 1))
    assert [status.number for status in statuses] == [3, 2, 1]

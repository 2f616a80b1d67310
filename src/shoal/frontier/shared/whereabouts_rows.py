"""Where a page is, as the SQL engines answer it: a task for it in one run, or how such a task ended."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from shoal.core.clock import Moment
from shoal.core.outcome import Reason
from shoal.core.task import FINAL, RunState, State
from shoal.frontier.contract.reader import Whereabouts

_reason = msgspec.json.Decoder(Reason).decode


class PageInRun(NamedTuple):
    """A run that has seen a page."""

    run_id: str
    scraper: str
    state: RunState

    def done(self) -> Whereabouts:
        """There is nothing else to know of the page in this run."""
        return Whereabouts(self.run_id, self.scraper, self.state, State.DONE)


class TaskOfPage(NamedTuple):
    """A task for a page. `reason`: JSON. `ended_at`: counts only where it has ended."""

    task: int | None
    lane: str | None
    pool: str | None
    ahead: int
    not_before: Moment | None
    expires_at: Moment | None
    attempts: int
    crashes: int
    worker: str | None
    exit: str | None
    lease_until: Moment | None
    reason: str | None
    ended_at: Moment | None
    url: str | None

    def whereabouts(self, run: PageInRun, state: State) -> Whereabouts:
        """In that run and state."""
        return Whereabouts(
            run.run_id,
            run.scraper,
            run.state,
            state,
            self.task,
            self.lane,
            self.pool,
            self.ahead,
            self.not_before,
            self.expires_at,
            self.attempts,
            self.crashes,
            self.worker,
            self.exit,
            self.lease_until,
            is_held(state, run.state),
            None if self.reason is None else _reason(self.reason),
            self.ended_at if state in FINAL else None,
            self.url,
        )


def is_held(state: State, run: RunState) -> bool:
    """Whether a task waits for nothing but that its run is resumed."""
    return state is State.WAITING and run is RunState.PAUSED

"""Classification: from an answer or an error to an outcome. Values in, values out."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from shoal.api.blocked import NOT_BLOCKED, Blocked
from shoal.core.clock import Millis, Moment
from shoal.core.outcome import Blame, Dead, Outcome, Reason, Retried, Snoozed
from shoal.core.politeness import BACKOFF_FIRST, MAX_BACKOFF, RETRY_FIRST, backoff, retry_after, retry_wait
from shoal.core.storable import cleaned
from shoal.core.task import Lease
from shoal.fetch.protocol import FetchError, Stage
from shoal.work.task.attempt import Attempt, Trouble

WORTH_RETRYING = frozenset({408, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524})

LEAST_BACKOFF: Millis = 1000
"""A rate limit is waited for at least this long, even where the server says that it is over already."""

MOST_DETOURS = 3
"""Where it is in doubt whether an exit or the target failed, a task is tried by other exits this many times in all."""


def because(blame: Blame, text: object, detail: str | None = None) -> Reason:
    """A reason that any store can hold, whatever a server or a handler has put into it."""
    return Reason(blame, cleaned(text), None if detail is None else cleaned(detail))


_TROUBLES = {Stage.NETWORK: Trouble.NETWORK, Stage.CONNECTION: Trouble.SITE, Stage.ANSWER: Trouble.DOUBT}


def trouble_of(error: FetchError, outcome: Outcome) -> Trouble | None:
    """What an error says about the site that was asked; None = nothing, or nothing that will pass."""
    if error.permanent or not isinstance(outcome, Retried | Dead) or outcome.reason.blame is not Blame.HOST:
        return None
    return _TROUBLES[error.stage] if error.blame is Blame.HOST else Trouble.DOUBT


@dataclass(frozen=True, slots=True)
class Classifier:
    """How one scraper's failures are treated. `attempts`: so many that fail make a dead letter.

    `blocked`: what says that the site has had enough of us, besides 429. `max_backoff`: a site that asks for longer is
    asked again after this.
    """

    attempts: int
    chance: random.Random
    blocked: Blocked = NOT_BLOCKED
    retry_first: Millis = RETRY_FIRST
    backoff_first: Millis = BACKOFF_FIRST
    max_backoff: Millis = MAX_BACKOFF

    def failure(self, lease: Lease, reason: Reason, *, permanent: bool = False, wait: Millis | None = None) -> Outcome:
        """The task's own failure: another attempt after a growing wait, or its end."""
        failed = lease.task.attempts + 1
        if permanent or failed >= self.attempts:
            return Dead(reason)
        return Retried(retry_wait(failed, self.chance, self.retry_first) if wait is None else wait, reason)

    def no_answer(self, attempt: Attempt, error: FetchError) -> Outcome:
        """No usable answer came. A failure of the exit costs the task nothing.

        In doubt the task is tried by other exits; if none of them gets through, it is the target that fails.
        """
        lease = attempt.lease
        if error.blame is Blame.POLICY:
            return Dead(because(error.blame, error.text))
        if error.blame is not Blame.EXIT:
            return self.failure(lease, because(error.blame, error.text), permanent=error.permanent)
        reason = because(Blame.EXIT, f"{error.text} (exit {lease.exit})")
        if not error.doubtful:
            attempt.exits_failed = (lease.exit,)
            return Snoozed(reason=reason)
        if len(attempt.extra.detours) + 1 >= MOST_DETOURS:
            return self.failure(lease, because(Blame.HOST, error.text), permanent=error.permanent)
        extra = msgspec.structs.replace(lease.task.extra, detours=(*attempt.extra.detours, lease.exit))
        return Snoozed(reason=reason, extra=extra)

    def answer(
        self, lease: Lease, status: int, headers: Mapping[str, str], now: Moment, *, accepted: bool = False
    ) -> Outcome | None:
        """What an answer means by its status alone. None = it is for the handler. `accepted`: who wrote it wants to see
        this status; a rate limit is one all the same."""
        if 200 <= status < 300:
            return None
        limited = self.rate_limit(lease, status, headers, now)
        if limited is not None:
            return limited
        if accepted:
            return None
        blame = Blame.HOST if status >= 500 else Blame.URL
        return self.failure(lease, Reason(blame, f"HTTP {status}"), permanent=status not in WORTH_RETRYING)

    def rate_limit(self, lease: Lease, status: int, headers: Mapping[str, str], now: Moment) -> Snoozed | None:
        """How long the slot is to wait; None = the answer is no rate limit."""
        blocked = status in self.blocked.statuses
        if status not in (429, 503) and not blocked:
            return None
        asked = retry_after(headers.get("Retry-After"), now, self.max_backoff)
        if asked is None and status == 503 and not blocked:
            return None
        says = "" if asked is None else f", Retry-After {asked / 1000:.0f} s"
        return self._back_off(lease, asked, f"rate limited (HTTP {status}{says})")

    def looks_blocked(self, lease: Lease, body: bytes) -> Snoozed | None:
        """How long the slot is to wait because of what the page says, whatever its status; None = it is a page."""
        found = self.blocked.found_in(body)
        return None if found is None else self._back_off(lease, None, f"blocked (the page matches {found!r})")

    def _back_off(self, lease: Lease, asked: Millis | None, why: str) -> Snoozed:
        penalty = lease.penalty + 1
        wait = backoff(penalty, self.chance, self.backoff_first) if asked is None else max(asked, LEAST_BACKOFF)
        wait = min(wait, max(self.max_backoff, LEAST_BACKOFF))
        return Snoozed(wait, penalty, Reason(Blame.HOST, why))

"""From what happened to an outcome. Values in, values out."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from shoal.clock import Millis, Moment
from shoal.fetch.protocol import FetchError
from shoal.outcome import Blame, Dead, Outcome, Reason, Retried, Snoozed
from shoal.politeness import backoff, retry_after, retry_wait
from shoal.task import Lease

REDIRECTS = frozenset({301, 302, 303, 307, 308})
WORTH_RETRYING = frozenset({408, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524})

LEAST_BACKOFF: Millis = 1000
"""A rate limit is waited for at least this long, even where the server says that it is over already."""

LONGEST_TEXT = 1000


def because(blame: Blame, text: object, detail: str | None = None) -> Reason:
    """A reason that any store can hold, whatever a server or a handler has put into it."""
    return Reason(blame, readable(text), None if detail is None else readable(detail))


def readable(text: object) -> str:
    """Anything as a text of reasonable length and of whole characters."""
    try:
        words = str(text)
    except Exception:  # noqa: BLE001 - a report must not fail because a user's __str__ does
        words = f"<{type(text).__name__} that cannot be shown>"
    if len(words) > LONGEST_TEXT:
        words = f"{words[:LONGEST_TEXT]}…"
    return words.encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class Judge:
    """How one scraper's failures are treated. `retries`: so many failed attempts make a dead letter."""

    retries: int
    chance: random.Random

    def failure(self, lease: Lease, reason: Reason, *, permanent: bool = False, wait: Millis | None = None) -> Outcome:
        """The task's own failure: another attempt after a growing wait, or its end."""
        attempts = lease.task.attempts + 1
        if permanent or attempts >= self.retries:
            return Dead(reason)
        return Retried(retry_wait(attempts, self.chance) if wait is None else wait, reason)

    def no_answer(self, lease: Lease, error: FetchError) -> Outcome:
        """The request was made and no usable answer came."""
        return self.failure(lease, because(error.blame, error.text), permanent=error.permanent)

    def answer(self, lease: Lease, status: int, headers: Mapping[str, str], now: Moment) -> Outcome | None:
        """What an answer means by its status alone. None = it is for the handler."""
        if 200 <= status < 300:
            return None
        limited = self.rate_limit(lease, status, headers, now)
        if limited is not None:
            return limited
        blame = Blame.HOST if status >= 500 else Blame.URL
        return self.failure(lease, Reason(blame, f"HTTP {status}"), permanent=status not in WORTH_RETRYING)

    def rate_limit(self, lease: Lease, status: int, headers: Mapping[str, str], now: Moment) -> Snoozed | None:
        """How long the slot is to wait; None = the answer is no rate limit."""
        if status not in (429, 503):
            return None
        asked = retry_after(headers.get("Retry-After"), now)
        if asked is None and status == 503:
            return None
        penalty = lease.penalty + 1
        wait = backoff(penalty, self.chance) if asked is None else max(asked, LEAST_BACKOFF)
        says = "" if asked is None else f", Retry-After {asked / 1000:.0f} s"
        return Snoozed(wait, penalty, Reason(Blame.HOST, f"rate limited (HTTP {status}{says})"))

"""A handler's failure as a value: told in the process where it was raised, and weighed in that of the worker."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from shoal.api.handler import Handler
from shoal.core.clock import Millis, millis
from shoal.core.duration import MOST_SECONDS, seconds_from
from shoal.core.outcome import Blame, Dead, Dropped, Outcome, Reason
from shoal.core.storable import cleaned
from shoal.core.task import Lease
from shoal.errors import BadScraper, Drop, PageTooComplex, Retry
from shoal.work.task.classify import Classifier, because
from shoal.work.task.failure_report import MOST_BYTES, traceback_of, where


class FailureKind(StrEnum):
    """What a failure means for its task."""

    DROP = "drop"
    RETRY = "retry"
    """The handler asks for another attempt."""
    PAGE = "page"
    """The page cannot be read by anybody."""
    SCRAPER = "scraper"
    """The scraper is wrong as written."""
    ERROR = "error"
    """Any other exception."""
    STOPPED = "stopped"
    """It had to be stopped: it held up its worker, took too long, or its process has died."""


class HandlerFailure(msgspec.Struct, frozen=True):
    """`name`: of the exception. `wait`: before the next attempt that is asked for; None = the usual time.
    `detail`, `traceback`: as of a Reason."""

    kind: FailureKind
    name: str
    text: str
    wait: Millis | None = None
    detail: str | None = None
    traceback: str | None = None

    def outcome(self, lease: Lease, classify: Classifier, *, again: bool) -> Outcome:
        """What becomes of the task. `again`: a mistake of the handler is worth another attempt."""
        match self.kind:
            case FailureKind.DROP:
                return Dropped(because(Blame.HANDLER, self.text))
            case FailureKind.RETRY:
                wait = None if self.wait is None else min(max(self.wait, 0), millis(MOST_SECONDS))
                return classify.failure(lease, because(Blame.HANDLER, self.text), wait=wait)
            case FailureKind.PAGE:
                return Dead(because(Blame.URL, self.text))
            case FailureKind.SCRAPER:
                return Dead(self._reason())
            case FailureKind.ERROR:
                return classify.failure(lease, self._reason(), permanent=not again)
            case FailureKind.STOPPED:
                return classify.failure(lease, self._reason())

    def _reason(self) -> Reason:
        reason = because(Blame.HANDLER, self.text, self.detail)
        shown = None if self.traceback is None else cleaned(self.traceback, MOST_BYTES)
        return msgspec.structs.replace(reason, traceback=shown)


class HandlerStopped(BaseException):
    """Raised in a handler that holds the event loop for too long, by the watchdog. Nobody else is to catch it."""


def failure_of(error: BaseException, handler: Handler) -> HandlerFailure:
    """What a handler raised, as a value."""
    name = type(error).__name__
    match error:
        case Drop():
            return HandlerFailure(FailureKind.DROP, name, cleaned(error.reason))
        case Retry(after=None):
            return HandlerFailure(FailureKind.RETRY, name, cleaned(error.reason))
        case Retry():
            try:
                wait = _asked_wait(error.after)
            except ValueError as wrong:
                text = f"raised Retry with after={error.after!r}, which must be {wrong}"
                return _told(FailureKind.ERROR, text, error, handler)
            return HandlerFailure(FailureKind.RETRY, name, cleaned(error.reason), wait)
        case PageTooComplex():
            return HandlerFailure(FailureKind.PAGE, name, cleaned(error))
        case BadScraper():
            return _told(FailureKind.SCRAPER, str(error), error, handler)
        case HandlerStopped():
            return _told(FailureKind.STOPPED, cleaned(error), error, handler)
        case _:
            text = cleaned(error)
            return _told(FailureKind.ERROR, f"{name}: {text}" if text else name, error, handler)


def _told(kind: FailureKind, text: str, error: BaseException, handler: Handler) -> HandlerFailure:
    place = where(error, handler)
    return HandlerFailure(kind, type(error).__name__, text, None, place, traceback_of(error, handler))


def _asked_wait(after: object) -> Millis:
    """A number that was worked out may lie in the past or too far away, and means the nearest that can be."""
    if isinstance(after, int | float):
        after = min(max(after, 0.0), MOST_SECONDS) if after == after else None
    return millis(seconds_from(after))

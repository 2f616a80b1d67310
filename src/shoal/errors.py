"""Everything that can go wrong, in one tree.

ShoalError
├── UsageError              the user asked for something that cannot be: one sentence, exit code 2
│   ├── BadURL              a URL that cannot be fetched, with the reason
│   ├── BadSettings         shoal.toml, environment or command line
│   ├── BadScraper          a scraper that is wrong as written (label, option, yield)
│   ├── BadTarget           `file.py:name` that does not lead to a scraper
│   ├── UnknownRun          no run of that id in this engine
│   ├── CannotUnseal        a secret that was sealed with a key which is not here
│   ├── BeingMoved          a run on its way between two stores, which cannot be changed meanwhile
│   └── TorFailed           a Tor daemon that is missing, does not start, or finds no way into its network
├── EngineError             the store cannot do its work
│   ├── EngineUnavailable   not reachable, locked, restarting: may pass, so it is worth trying again
│   ├── EngineRefused       there, but not as asked (password, rights, version): somebody has to change something
│   │   └── NoStore         the server is there, and nothing of Shoal in it yet
│   ├── EngineFull          no space left
│   ├── Unstorable          well and there, but not for this value: others are stored, this one never will be
│   └── EngineBroken        corrupt, foreign or of another version
├── PageTooComplex          a page that a parser would take very long, or very much memory, for
├── StartRefused            a request may not start under its lease; give the lease back
│   ├── TooLate             no longer, or not so soon after the last one
│   └── NeedsAnotherLease   the lease allows no further request; the next one waits for its turn like any other
└── GatewayError            what a client of the gateway is told
    ├── RequestRefused      the gateway says what is wrong with the request
    │   └── UnknownJob      no such job, or its results are gone
    ├── GatewayUnavailable  nobody answers, or only "not now", for as long as the client has patience
    ├── BadWebhook          a message that claims to come from a gateway, and does not
    ├── JobFailed           the job has ended, and is not complete
    └── JobUnfinished       the job has not ended in the time that was given for it

Signal                      what a handler raises to say how a task ends
├── Retry                   try again later; counts as an attempt
└── Drop                    not wanted; ends the task without a failure

The message of a ShoalError is a whole sentence that says what is wrong, where, and what to do. It is shown as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.client.job import Job


class ShoalError(Exception):
    """Base of all errors that Shoal raises on purpose."""


class UsageError(ShoalError):
    """What was asked for cannot be done as asked."""


class BadURL(UsageError):
    """A URL was refused at the door. `reason` is a short phrase, without the URL."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        shown = url if len(url) <= 120 else f"{url[:100]}… ({len(url)} characters)"
        super().__init__(f"The URL {shown!r} was refused: {reason}.")


class BadSettings(UsageError):
    """A setting is unknown or has a value that cannot be used."""


class BadScraper(UsageError):
    """A scraper is wrong as written. `place`: the line where that was noticed (`books.py:12 in detail`), if known."""

    place: str | None = None


class BadTarget(UsageError):
    """A target on the command line does not lead to a scraper."""


class UnknownRun(UsageError):
    """No run of that id exists in this engine."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"There is no run {run_id!r} in this engine. `shoal runs` lists those that exist.")


class BeingMoved(UsageError):
    """A run is on its way between two stores, and cannot be changed meanwhile."""

    def __init__(self, run_id: str, *, arriving: bool) -> None:
        self.run_id = run_id
        super().__init__(
            f"The run {run_id!r} is still being moved to this store. Give the same `shoal move` again to finish that."
            if arriving
            else f"The run {run_id!r} is being moved to another store and cannot be changed. Wait for that to end, or "
            f"keep it here with `shoal resume {run_id}`."
        )


class TorFailed(UsageError):
    """A Tor daemon cannot be had: none is installed, it does not start, or its network cannot be reached."""


class CannotUnseal(UsageError):
    """A secret in the store cannot be opened. `key`: what names the one that it was sealed with; never the key."""

    def __init__(self, key: str, *, damaged: bool = False) -> None:
        self.key = key
        super().__init__(
            f"A secret in the store was changed since it was sealed with the key {key}, or was sealed for another use."
            if damaged
            else f"A secret in the store was sealed with the key {key}, which is not here. Give all who share the "
            "store the same secret_key (SHOAL_SECRET_KEY); while it is changed, the old behind the new: `new,old`."
        )


class EngineError(ShoalError):
    """The store behind the frontier cannot do its work."""


class EngineUnavailable(EngineError):
    """The store cannot be reached or written to at the moment. Workers wait until it can."""


class EngineRefused(EngineError):
    """The store is not one that can be used as asked. Trying again will not help."""


class NoStore(EngineRefused):
    """There is no store yet where one must exist already."""


class EngineFull(EngineError):
    """The store has no space left. What was acknowledged before is safe."""


class Unstorable(EngineError):
    """The store does not hold such a value. Nothing of the call was kept; without that value it would have been."""


class EngineBroken(EngineError):
    """The store holds something that this version cannot read."""


class PageTooComplex(ShoalError):
    """A page is not parsed, because that would take very long or very much memory. Its task fails for good."""

    def __init__(self, what: str) -> None:
        super().__init__(f"The page is too complex to be parsed: {what}.")


class StartRefused(ShoalError):
    """A request was not sent, because its lease does not allow it to start."""


class TooLate(StartRefused):
    """The request was not sent: its lease says that it may no longer start, or not so soon."""

    def __init__(self, text: str = "The request was not sent: its lease does not allow it to start now.") -> None:
        super().__init__(text)


class NeedsAnotherLease(StartRefused):
    """One lease allows one request start here; the next step has to wait for its turn like any other."""

    def __init__(self, text: str = "The next request needs another lease: give this one back.") -> None:
        super().__init__(text)


class GatewayError(ShoalError):
    """A client of the gateway did not get what it asked for."""


class RequestRefused(GatewayError):
    """The gateway will not do this, and says why.

    `status`: of HTTP. `title`, `detail`: what it says. `kind`: a word for programs, such as `bad-input`. `problem`: the
    whole document (RFC 9457).
    """

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.problem = problem
        self.title = str(problem.get("title", ""))
        self.detail = str(problem.get("detail", ""))
        self.kind = str(problem.get("type", "")).rpartition(":")[2]
        super().__init__(self.detail)


class UnknownJob(RequestRefused):
    """The gateway knows no such job (404), or has deleted its results because their time was over (410)."""


class GatewayUnavailable(GatewayError):
    """The gateway could not be asked. Whatever was submitted may be submitted again under the same idempotency key."""


class BadWebhook(GatewayError):
    """A message is not from the gateway, was changed on its way, or is too old to be believed."""


class JobFailed(GatewayError):
    """The job failed, or was cancelled. `job`: how it stands."""

    def __init__(self, job: Job) -> None:
        self.job = job
        why = f": {job.error}" if job.error else "."
        super().__init__(f"The job {job.job_id} has {'been cancelled' if job.status == 'cancelled' else 'failed'}{why}")


class JobUnfinished(GatewayError):
    """The job has not ended in time; it goes on. `job`: how it stood last, None = not known."""

    def __init__(self, job_id: str, job: Job | None) -> None:
        self.job = job
        stood = f" ({job.progress or job.status})" if job is not None else ""
        super().__init__(f"The job {job_id} has not ended in time{stood}. Wait again to go on.")


class Signal(Exception):
    """Base of what a handler raises to end its task in another way than by returning."""


class Retry(Signal):
    """Try this task again, `after` so long (a Duration; default: the usual growing delay). Counts as one attempt."""

    def __init__(self, reason: str = "asked by the handler", *, after: float | str | None = None) -> None:
        self.reason = reason
        self.after = after
        super().__init__(reason)


class Drop(Signal):
    """This page is not wanted. The task ends as dropped; nothing it yielded is kept."""

    def __init__(self, reason: str = "asked by the handler") -> None:
        self.reason = reason
        super().__init__(reason)

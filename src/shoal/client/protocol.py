"""The protocol of a gateway client, without I/O: each conversation is a generator that yields what to do next.

It is sent what came of it: a Reply or a NoAnswer for a GatewayRequest, nothing for a Pause. So one set of rules, and
one set of tests, serves both clients: `shoal.Client` does the steps with a socket, `shoal.AsyncClient` on a loop.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Generator, Mapping
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from shoal.client.job import Job, JobItemPage, JobPage
from shoal.core.clock import Clock
from shoal.core.duration import Duration, seconds_from
from shoal.errors import GatewayUnavailable, JobFailed, JobUnfinished, RequestRefused, UnknownJob, UsageError

Result = TypeVar("Result")

LONG_POLL = 25.0
"""Seconds that an answer may be held back until there is news."""

ANSWER_WITHIN = 15.0
"""Seconds that an answer may take besides."""

FIRST_PAUSE = 0.2
LONGEST_PAUSE = 5.0
"""Seconds between two tries, where nobody says how long to wait."""

TRY_AGAIN = frozenset({429, 502, 503, 504})
"""Not now: the gateway is busy or its store away, or the proxy in front of it finds none."""


class GatewayRequest(NamedTuple):
    """A request. It may be sent any number of times: submissions carry an idempotency key."""

    method: str
    path: str
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    held: float = 0.0

    @property
    def timeout(self) -> float:
        """Seconds after which nothing more is to be hoped for."""
        return self.held + ANSWER_WITHIN


class Reply(NamedTuple):
    """An answer. Names of headers in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoAnswer(NamedTuple):
    """The request may or may not have arrived. `reason`: a phrase."""

    reason: str


class Pause(NamedTuple):
    """Nothing is to be done for a while."""

    seconds: float


class _Until(Enum):
    """When an answer is to come, if not after some time: at once, when the job has ended, or when anything changes."""

    NOW = auto()
    END = auto()
    CHANGE = auto()


Step = GatewayRequest | Pause
Talk = Generator[Step, Reply | NoAnswer | None, Result]


class Talker:
    """`patience`: trouble (no answer, or only "not now") that has lasted so long is reported."""

    def __init__(self, clock: Clock, *, api_key: str | None = None, patience: Duration = 60.0) -> None:
        self._clock = clock
        self._patience = _seconds("patience", patience)
        self._chance = random.Random()  # noqa: S311 - spreads tries, hides nothing
        self._headers = {"accept": "application/json"}
        if api_key is not None:
            if not api_key.isascii() or not api_key.isprintable():
                raise UsageError("An API key is one line of plain ASCII text, as `shoal keys create` printed it.")
            self._headers["authorization"] = f"Bearer {api_key}"

    def submit(
        self, scraper: str, given: Any, urls: list[str] | None, key: str, callback: str | None = None
    ) -> Talk[Job]:
        """Submit a job, once, however often it has to be sent."""
        order = {"scraper": scraper, "input": given} if urls is None else {"scraper": scraper, "urls": urls}
        if callback is not None:
            order["callback"] = callback
        body = msgspec.json.encode(order, enc_hook=_as_json)
        headers = {"content-type": "application/json", "idempotency-key": key}
        reply = yield from self._ask(GatewayRequest("POST", "/jobs", headers, body))
        return _read(reply, Job)

    def result(self, job_id: str) -> Talk[Job]:
        """How a job stands."""
        reply = yield from self._ask(GatewayRequest("GET", _path_of(job_id, at="results")))
        return _read(reply, Job)

    def cancel(self, job_id: str) -> Talk[Job]:
        """End a job."""
        reply = yield from self._ask(GatewayRequest("DELETE", _path_of(job_id)))
        return _read(reply, Job)

    def jobs_before(self, before: int | None) -> Talk[JobPage]:
        """A page of jobs."""
        reply = yield from self._ask(GatewayRequest("GET", "/jobs" if before is None else f"/jobs?before={before}"))
        return _read(reply, JobPage)

    def records_after(self, job_id: str, cursor: int) -> Talk[JobItemPage]:
        """A page of records."""
        reply = yield from self._ask(GatewayRequest("GET", f"{_path_of(job_id)}/items?cursor={cursor}"))
        return _read(reply, JobItemPage)

    def wait(self, job_id: str, within: Duration | None, on_news: Callable[[Job], object] | None) -> Talk[Job]:
        """The job when it is complete. Who wants no news on the way is told of the end and of nothing else.

        After news comes a hint: for so long the gateway is asked to answer only if the job ends. A job in the queue
        is then news again, because of its place; of one that is worked on, the next change is. A gateway that does not
        let us wait (it has no room, or is about to end) is left alone for as long as it says.
        """
        over = math.inf if within is None else self._now() + _seconds("within", within)
        question = _Until.END if on_news is None else _Until.NOW
        job: Job | None = None
        tag, hint = "", LONG_POLL
        while True:
            asked = self._now()
            seconds = 0.0 if question is _Until.NOW else LONG_POLL if question is _Until.CHANGE else hint
            seconds = max(0.0, min(seconds, over - asked))
            path = f"{_path_of(job_id, at='results')}?wait={seconds:.3f}"
            known = {"if-none-match": tag} if question is _Until.CHANGE else {}
            reply = yield from self._ask(GatewayRequest("GET", path, known, held=seconds))
            fresh = reply.status != HTTPStatus.NOT_MODIFIED
            pause = _retry_after(reply)
            if fresh:
                job, tag = _read(reply, Job), reply.headers.get("etag", "")
                if on_news is not None:
                    on_news(job)
                if job.has_ended:
                    return _complete(job)
                pause = job.poll_after or pause
            now = self._now()
            if now >= over:
                raise JobUnfinished(job_id, job)
            news = question is _Until.NOW or (question is _Until.CHANGE and fresh)
            if not news and now < asked + seconds:
                yield Pause(min(pause, over - now))
            if on_news is not None:
                hint = pause
                question = _Until.END if news or job is None or job.status == "queued" else _Until.CHANGE

    def _ask(self, ask: GatewayRequest) -> Talk[Reply]:
        """The answer, after as many tries as it takes. Raises GatewayUnavailable when patience is over."""
        ask = ask._replace(headers={**self._headers, **ask.headers})
        tries = 0
        patient_until = 0.0
        while True:
            came = yield ask
            if isinstance(came, Reply) and came.status not in TRY_AGAIN:
                return _checked(came)
            if tries == 0:  # an answer that was held back for long and then lost was no trouble until now
                patient_until = self._now() + self._patience
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(tries, 10)) * self._chance.uniform(0.75, 1.25)
            if isinstance(came, Reply):
                pause = max(pause, _retry_after(came, 0.0))
            tries += 1
            if self._now() + pause > patient_until:
                raise _given_up(came)
            yield Pause(pause)

    def _now(self) -> float:
        return self._clock.elapsed() / 1000


def _seconds(name: str, value: Duration) -> float:
    try:
        return seconds_from(value)
    except ValueError as error:
        raise UsageError(f"{name}={value!r} cannot be used: it must be {error}.") from None


def _as_json(value: Any) -> Any:
    """For inputs that are pydantic models."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise UsageError(f"The input cannot be sent as JSON: it holds something of type {type(value).__name__}.")


def _path_of(job_id: str, *, at: str = "jobs") -> str:
    return f"/{at}/{quote(job_id, safe='')}"


def _complete(job: Job) -> Job:
    if job.status != "complete":
        raise JobFailed(job)
    return job


def _checked(reply: Reply) -> Reply:
    """The reply, if it is one that was hoped for."""
    if reply.status < 300 or reply.status == HTTPStatus.NOT_MODIFIED:
        return reply
    problem = _problem(reply)
    if str(problem.get("type", "")).endswith((":unknown-job", ":expired-job")):
        raise UnknownJob(reply.status, problem)
    raise RequestRefused(reply.status, problem)


def _problem(reply: Reply) -> dict[str, Any]:
    """What an answer says of what is wrong; at least something, if it is not one of the gateway's own."""
    document: Any = None
    if "json" in reply.headers.get("content-type", ""):
        try:
            document = msgspec.json.decode(reply.body)
        except msgspec.DecodeError:
            document = None
    problem = document if isinstance(document, dict) else {}
    try:
        title = HTTPStatus(reply.status).phrase
    except ValueError:
        title = "a status that nobody knows"
    return {"title": title, "detail": f"The gateway answered {reply.status} ({title}).", **problem}


def _given_up(came: Reply | NoAnswer | None) -> Exception:
    if isinstance(came, Reply):
        if came.status == HTTPStatus.TOO_MANY_REQUESTS:
            return RequestRefused(came.status, _problem(came))
        return GatewayUnavailable(str(_problem(came)["detail"]))
    reason = came.reason if came is not None else "it was not asked"
    return GatewayUnavailable(f"The gateway does not answer ({reason}).")


def _retry_after(reply: Reply, otherwise: float = 1.0) -> float:
    text = reply.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else otherwise


def _read(reply: Reply, kind: type[Result]) -> Result:
    try:
        return msgspec.json.decode(reply.body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        detail = "What answered there is not a gateway of Shoal; check the URL."
        raise RequestRefused(reply.status, {"title": "Not a gateway", "detail": detail}) from None

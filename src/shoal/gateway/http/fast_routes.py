"""Fast routes, as plain ASGI: the two that everybody uses all the time, submit a job and ask how it stands."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec

from shoal.core.clock import Moment
from shoal.frontier.contract.jobs import Admission
from shoal.gateway.http import job_documents
from shoal.gateway.http.answer import Answer, Problem, encode, retry_after
from shoal.gateway.http.asgi import Scope, header, query
from shoal.gateway.http.caller import caller_of
from shoal.gateway.jobs.estimates import ask_again
from shoal.gateway.jobs.prepare import shown_refusals
from shoal.gateway.limits.keys import ApiKey
from shoal.gateway.limits.read_quota import limit_fields
from shoal.gateway.service import AcceptedJob, GatewayService

_JOB_ID = re.compile(r"[a-z][a-z0-9_-]*-[0-9a-f]{32}")
_ETAG = re.compile(r'(?:W/)?"(\d{1,18})"')


class JobRequestBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `POST /jobs`."""

    scraper: str
    input: msgspec.Raw = msgspec.Raw(b"null")
    urls: list[str] | None = None
    callback: str | None = None


_job_request = msgspec.json.Decoder(JobRequestBody)


async def submit_input(service: GatewayService, scope: Scope, key: ApiKey, body: bytes, scraper: str) -> Answer:
    """`POST /{scraper}`: the body is the input."""
    callback = query(scope).get("callback")
    accepted = await service.submit(key, scraper, body, None, header(scope, b"idempotency-key"), body, callback)
    return _accepted(key, accepted, service.clock.now())


async def submit_job(service: GatewayService, scope: Scope, key: ApiKey, body: bytes) -> Answer:
    """`POST /jobs`: the body names the scraper, and has an input or URLs."""
    try:
        request = _job_request.decode(body)
        given = None if bytes(request.input) == b"null" else bytes(request.input)
    except msgspec.ValidationError as error:
        raise Problem(422, "bad-input", f"The body is wrong: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, "bad-json", f"The body is not JSON: {error}.") from None
    except RecursionError:
        raise Problem(400, "bad-json", "The body is nested too deeply.") from None
    if given is not None and request.urls is not None:
        raise Problem(422, "bad-input", "A job has an input or a list of URLs, not both.")
    once = header(scope, b"idempotency-key")
    accepted = await service.submit(key, request.scraper, given, request.urls, once, body, request.callback)
    return _accepted(key, accepted, service.clock.now())


async def show_job(service: GatewayService, scope: Scope, key: ApiKey, job_id: str) -> Answer:
    """`GET /results/{id}` and `GET /jobs/{id}`: at once, or with `?wait=` when there is news."""
    limits = service.read_quota.spend(key)
    seconds = _wait(scope, service.options.max_wait)
    if not _JOB_ID.fullmatch(job_id):
        raise job_documents.unknown(job_id)
    status = await service.see(key, job_id)
    known = _known(header(scope, b"if-none-match"))
    if seconds:
        status = await service.wait(key, status, known, seconds, caller_of(scope))
    tag = job_documents.etag(status).encode()
    headers: tuple[tuple[bytes, bytes], ...] = ((b"etag", tag), (b"cache-control", b"private, no-cache"), *limits)
    if not status.has_ended:
        headers += (retry_after(ask_again(service.expected(status))),)
    if known == status.version:
        return Answer(304, headers=headers)
    return Answer(200, await service.document(status), headers)


def _accepted(key: ApiKey, accepted: AcceptedJob, now: Moment) -> Answer:
    submitted = accepted.submitted
    resets_in = max(1, math.ceil((submitted.resets_at - now) / 1000))
    limits = limit_fields("jobs", key.limit, submitted.used, resets_in) if submitted.resets_at and key.limit else ()
    if submitted.admission is Admission.LIMITED:
        raise Problem(
            429, "too-many-jobs", f"This API key may submit {key.limit} jobs a minute.",
            headers=(*limits, retry_after(resets_in)),
        )  # fmt: skip
    where = f"/results/{submitted.job_id}"
    document: dict[str, Any] = {
        "job_id": submitted.job_id,
        "status": "queued",
        "position": submitted.position,
        "estimated_time": max(1, round(accepted.estimated)),
        "poll_after": accepted.poll_after,
        "location": where,
        **shown_refusals(accepted.prepared),
    }
    headers = [(b"location", where.encode()), retry_after(accepted.poll_after), *limits]
    if submitted.admission is Admission.REPEATED:
        headers.append((b"idempotency-replayed", b"true"))
    return Answer(202, encode(document), tuple(headers))


def _wait(scope: Scope, most: float) -> float:
    """Seconds that the client is ready to wait; more than the service allows is less."""
    text = query(scope).get("wait")
    if text is None:
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise Problem(422, "bad-query", f"wait={text[:20]!r} is not a number of seconds, 0 or more.")
    return min(seconds, most)


def _known(text: str | None) -> int | None:
    """The newest version that the client has, by its If-None-Match; None = none that we gave."""
    tags = text.split(",") if text else ()
    return max((int(found[1]) for tag in tags if (found := _ETAG.fullmatch(tag.strip()))), default=None)

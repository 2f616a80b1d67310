"""The two routes that everybody uses all the time, as plain ASGI: submit a job, and ask how it stands."""

from __future__ import annotations

import math
import re
import time
from typing import Any

import msgspec

from shoal.frontier.jobs import Admission
from shoal.gateway import documents
from shoal.gateway.answer import Answer, Problem, encode, retry_after
from shoal.gateway.http import Receive, Scope, header, query, read_body
from shoal.gateway.keys import ApiKey
from shoal.gateway.pace import ask_again
from shoal.gateway.preparing import shown_refusals
from shoal.gateway.reads import limit_fields
from shoal.gateway.service import Accepted, Service

_JOB_ID = re.compile(r"[a-z][a-z0-9_-]*-[0-9a-f]{32}")
_ETAG = re.compile(r'(?:W/)?"(\d{1,18})"')


class Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of `POST /jobs`."""

    scraper: str
    input: msgspec.Raw = msgspec.Raw(b"null")
    urls: list[str] | None = None
    callback: str | None = None


_order = msgspec.json.Decoder(Order)


async def whose(service: Service, scope: Scope) -> ApiKey:
    """Whose request this is. Raises Problem 401."""
    given = header(scope, b"authorization")
    if given is None:
        return await service.keys.who(header(scope, b"x-api-key"))
    scheme, _, secret = given.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Problem(
            401, "no-api-key", "Send the API key as `Authorization: Bearer KEY`.",
            headers=((b"www-authenticate", b"Bearer"),),
        )  # fmt: skip
    return await service.keys.who(secret.strip())


async def submit_input(service: Service, scope: Scope, receive: Receive, scraper: str) -> Answer:
    """`POST /{scraper}`: the body is the input."""
    service.submissions.check()
    key = await whose(service, scope)
    body = await read_body(scope, receive, service.options.max_body)
    callback = query(scope).get("callback")
    accepted = await service.submit(key, scraper, body, None, header(scope, b"idempotency-key"), body, callback)
    return _accepted(key, accepted)


async def submit_order(service: Service, scope: Scope, receive: Receive) -> Answer:
    """`POST /jobs`: the body names the scraper, and has an input or URLs."""
    service.submissions.check()
    key = await whose(service, scope)
    body = await read_body(scope, receive, service.options.max_body)
    try:
        order = _order.decode(body)
        given = None if bytes(order.input) == b"null" else bytes(order.input)
    except msgspec.ValidationError as error:
        raise Problem(422, "bad-input", f"The body is wrong: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Problem(400, "bad-json", f"The body is not JSON: {error}.") from None
    if given is not None and order.urls is not None:
        raise Problem(422, "bad-input", "A job has an input or a list of URLs, not both.")
    once = header(scope, b"idempotency-key")
    accepted = await service.submit(key, order.scraper, given, order.urls, once, body, order.callback)
    return _accepted(key, accepted)


async def show_job(service: Service, scope: Scope, job_id: str) -> Answer:
    """`GET /results/{id}` and `GET /jobs/{id}`: at once, or with `?wait=` when there is news."""
    key = await whose(service, scope)
    limits = service.reads.spend(key)
    seconds = _wait(scope, service.options.max_wait)
    if not _JOB_ID.fullmatch(job_id):
        raise documents.unknown(job_id)
    status = await service.see(key, job_id)
    known = _known(header(scope, b"if-none-match"))
    if seconds:
        status = await service.wait(key, status, known, seconds)
    tag = documents.etag(status).encode()
    headers: tuple[tuple[bytes, bytes], ...] = ((b"etag", tag), (b"cache-control", b"private, no-cache"), *limits)
    if not status.has_ended:
        headers += (retry_after(ask_again(service.expected(status))),)
    if known == status.version:
        return Answer(304, headers=headers)
    return Answer(200, await service.document(status), headers)


def _accepted(key: ApiKey, accepted: Accepted) -> Answer:
    submitted = accepted.submitted
    resets_in = max(1, math.ceil((submitted.resets_at - time.time() * 1000) / 1000))
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

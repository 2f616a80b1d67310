"""Answers without an end: the events of a job as they come (SSE), and all of its items, one a line (NDJSON)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from shoal.core.url import without_credentials
from shoal.frontier.contract.jobs import JobStatus
from shoal.frontier.contract.reader import Item
from shoal.gateway.http import job_documents
from shoal.gateway.http.answer import Problem, encode
from shoal.gateway.jobs.estimates import ask_again
from shoal.gateway.limits.keys import ApiKey
from shoal.gateway.service import GatewayService

NDJSON = "application/x-ndjson"
HEARTBEAT = 15.0
"""Seconds after which a stream of events gives a sign of life, for proxies that close what is silent."""


async def events(service: GatewayService, key: ApiKey, status: JobStatus, known: int | None) -> AsyncIterator[bytes]:
    """The events of a job, until it has ended, or until this client can no longer be told: then the last says why.

    `known`: the newest version that the client has.
    """
    while not service.closing:
        if status.version != known:
            yield _event(service, status)
            known = status.version
        else:
            yield b": still there\n\n"
        if status.has_ended:
            return
        try:
            service.check_waiting()  # who may not wait must not ask again at once
            status = await service.wait(key, status, known, HEARTBEAT)
        except Problem as problem:
            yield b"event: problem\ndata: %s\n\n" % encode(problem.document())
            return


class StreamCut(Exception):
    """The rest cannot be had. The connection ends and the stream does not, so that the client knows."""


async def lines(service: GatewayService, key: ApiKey, job_id: str, cursor: int) -> AsyncIterator[bytes]:
    """The items of a job, page by page, as long as the key is good. Raises StreamCut if there are more."""
    following: int | None = cursor
    while following is not None:
        try:
            service.keys.check(key)
            page = await service.items(key, job_id, following, 1000)
        except Problem:
            raise StreamCut from None
        if page.items:
            yield b"".join(encode(record(item)) + b"\n" for item in page.items)
        following = page.cursor


def record(item: Item) -> dict[str, Any]:
    """An item with where it came from."""
    return {"group": item.group, "url": without_credentials(item.url), "item": item.body}


def _event(service: GatewayService, status: JobStatus) -> bytes:
    if status.has_ended:
        kind, document = b"end", job_documents.summary(status)
    else:
        expected = service.expected(status)
        kind, document = b"status", job_documents.waiting(status, expected, ask_again(expected))
    return b"event: %s\nid: %d\ndata: %s\n\n" % (kind, status.version, encode(document))

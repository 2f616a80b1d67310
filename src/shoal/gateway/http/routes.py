"""The ordinary routes: lists, items, events, health."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, FastAPI, Header, Query, Request
from fastapi.responses import Response, StreamingResponse

from shoal.core.url import without_credentials
from shoal.frontier.contract.jobs import JobStatus
from shoal.frontier.contract.reader import Item
from shoal.gateway.http import job_documents
from shoal.gateway.http.answer import Problem, encode
from shoal.gateway.http.docs_page import POLICY, handbook
from shoal.gateway.http.fast_routes import whose
from shoal.gateway.http.models import HealthDocument, ItemList, JobList, JobSummary, Offered
from shoal.gateway.http.openapi import JOB_ID, READING, problems
from shoal.gateway.jobs.estimates import ask_again
from shoal.gateway.metrics import Metrics
from shoal.gateway.service import GatewayService

NDJSON = "application/x-ndjson"
HEARTBEAT = 15.0
"""Seconds after which a stream of events gives a sign of life, for proxies that close what is silent."""


def routes(service: GatewayService, metrics: Metrics, named: set[str]) -> APIRouter:
    """All of them."""
    router = APIRouter()
    _add_jobs(router, service)
    _add_streams(router, service)
    _add_about(router, service, metrics, named)
    return router


def _add_jobs(router: APIRouter, service: GatewayService) -> None:
    @router.get("/jobs", response_model=JobList, responses=problems(401, 403, 422, 429, 503), tags=["jobs"])
    async def list_jobs(
        request: Request,
        before: Annotated[int | None, Query(ge=0, le=2**53, description="`next` of the page before.")] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """The newest jobs of this API key, or of all with the scope `admin`; only with an API key."""
        key = await whose(service, request.scope)
        service.read_quota.spend(key)
        if not key.key_id:
            raise Problem(403, "not-allowed", "Jobs are listed to holders of an API key only.")
        found = await service.listed(key, before, limit)
        more = found[-1].number if len(found) == limit else None
        return _json({"jobs": [job_documents.summary(status) for status in found], "next": more})

    @router.delete("/jobs/{job_id}", response_model=JobSummary, responses=READING, tags=["jobs"])
    async def cancel_job(request: Request, job_id: JOB_ID) -> Response:
        """End a job: nothing more is fetched for it, and what comes in after this is thrown away."""
        key = await whose(service, request.scope)
        return _json(job_documents.summary(await service.cancel(key, job_id)))


def _add_streams(router: APIRouter, service: GatewayService) -> None:
    @router.get(
        "/jobs/{job_id}/items",
        response_model=ItemList,
        responses={200: {"content": {NDJSON: {}}}, **READING},
        tags=["jobs"],
    )
    async def list_items(
        request: Request,
        job_id: JOB_ID,
        cursor: Annotated[int, Query(ge=0, le=2**53, description="`next` of the page before.")] = 0,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
        accept: Annotated[str | None, Header(description=f"`{NDJSON}`: all items, one a line.")] = None,
    ) -> Response:
        """Items as they come, page by page; or, as NDJSON, all that there are now in one stream."""
        key = await whose(service, request.scope)
        service.read_quota.spend(key)
        status = await service.see(key, job_id)
        if accept is not None and NDJSON in accept:
            return StreamingResponse(_lines(service, job_id, cursor), media_type=NDJSON)
        page = await service.items(job_id, cursor, limit)
        following = page.cursor if page.cursor is not None or status.has_ended else cursor
        return _json({"items": [_record(item) for item in page.items], "next": following})

    @router.get(
        "/jobs/{job_id}/events",
        response_class=Response,
        responses={200: {"description": "Server-sent events.", "content": {"text/event-stream": {}}}, **READING},
        tags=["jobs"],
    )
    async def follow_job(
        request: Request, job_id: JOB_ID, last_event_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None
    ) -> Response:
        """An event `status` now and whenever the job moves on; then `end`, with how it ended, and the stream ends."""
        key = await whose(service, request.scope)
        service.read_quota.spend(key)
        status = await service.see(key, job_id)
        known = int(last_event_id) if last_event_id and last_event_id.isdecimal() else None

        async def events() -> AsyncIterator[bytes]:
            nonlocal status, known
            while not service.closing:
                if status.version != known:
                    yield _event(service, status)
                    known = status.version
                else:
                    yield b": still there\n\n"
                if status.has_ended:
                    return
                try:
                    status = await service.wait(key, status, known, HEARTBEAT)
                except Problem as problem:
                    yield b"event: problem\ndata: %s\n\n" % encode(problem.document())
                    return

        return StreamingResponse(events(), media_type="text/event-stream", headers={"Cache-Control": "no-store"})


def _add_about(router: APIRouter, service: GatewayService, metrics: Metrics, named: set[str]) -> None:
    @router.get("/scrapers", response_model=list[Offered], responses=problems(401, 503), tags=["about"])
    async def list_scrapers(request: Request) -> Response:
        """What jobs can be submitted for."""
        key = await whose(service, request.scope)
        return _json(
            [
                {
                    "name": name,
                    "path": f"/{name}" if name in named else None,
                    "input": each.scraper.input.model_json_schema() if each.scraper.input else None,
                }
                for name, each in sorted(service.served.items())
                if key.scrapers is None or name in key.scrapers
            ]
        )

    @router.get("/health", response_model=HealthDocument, responses=problems(503), tags=["about"])
    async def health() -> Response:
        """Whether this process can take jobs, part by part. 503 if it cannot."""
        parts: dict[str, Any] = {
            "store": {"status": "ok" if service.breaker.trouble is None else "unavailable"},
            "workers": {"status": "ok" if service.workers else "none", "seen": service.workers},
            "gateway": {"status": "closing" if service.closing else "ok", "waiting": service.polls.waiting},
        }
        if service.breaker.trouble is not None or service.closing:
            raise Problem(503, "not-ready", "This process cannot take jobs at the moment.", parts=parts)
        return _json({"status": "ok" if service.workers else "no workers", "parts": parts})

    @router.get("/health/live", status_code=204, response_class=Response, tags=["about"])
    async def live() -> Response:
        """Answers as long as the process lives."""
        return Response(status_code=204)

    @router.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}, **problems(401, 403)},
        tags=["about"],
    )
    async def show_metrics(request: Request) -> Response:
        """Figures for Prometheus."""
        await whose(service, request.scope)
        return Response(metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")


def add_handbook(app: FastAPI) -> None:
    """The documentation of all routes, for people."""

    @app.get("/docs", include_in_schema=False)
    async def show_handbook() -> Response:
        headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff"}
        return Response(handbook(app.openapi()), media_type="text/html", headers=headers)


async def _lines(service: GatewayService, job_id: str, cursor: int) -> AsyncIterator[bytes]:
    following: int | None = cursor
    while following is not None:
        page = await service.items(job_id, following, 1000)
        if page.items:
            yield b"".join(encode(_record(item)) + b"\n" for item in page.items)
        following = page.cursor


def _record(item: Item) -> dict[str, Any]:
    return {"group": item.group, "url": without_credentials(item.url), "item": item.body}


def _event(service: GatewayService, status: JobStatus) -> bytes:
    if status.has_ended:
        kind, document = b"end", job_documents.summary(status)
    else:
        expected = service.expected(status)
        kind, document = b"status", job_documents.waiting(status, expected, ask_again(expected))
    return b"event: %s\nid: %d\ndata: %s\n\n" % (kind, status.version, encode(document))


def _json(document: Any) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")

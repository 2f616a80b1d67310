"""The ordinary routes: lists, items, events, health."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response, StreamingResponse

from shoal.gateway.http import job_documents
from shoal.gateway.http.answer import Problem
from shoal.gateway.http.docs_page import POLICY, handbook
from shoal.gateway.http.models import HealthDocument, ItemList, JobList, JobSummary, Offered
from shoal.gateway.http.openapi import JOB_ID, READING, Documentation, problems
from shoal.gateway.http.streams import NDJSON, events, lines, record
from shoal.gateway.limits.keyring import require
from shoal.gateway.limits.keys import ApiKey, Scope
from shoal.gateway.metrics import Metrics
from shoal.gateway.perimeter.unread_answers import RoomFor, check_room
from shoal.gateway.service import GatewayService

_VERSION = re.compile(r"[0-9]{1,18}")

KEY = "shoal.key"
"""Where the perimeter leaves whose request it is, in the scope of the request."""


def routes(service: GatewayService, metrics: Metrics, documentation: Documentation, room_for: RoomFor) -> APIRouter:
    """All of them. None takes a body: the perimeter reads those that there are, for the fast routes."""
    router = APIRouter()
    _add_jobs(router, service)
    _add_streams(router, service, room_for)
    _add_health(router, service)
    _add_about(router, metrics, documentation)
    return router


def _key_of(request: Request) -> ApiKey:
    key: ApiKey = request.scope[KEY]
    return key


def _add_jobs(router: APIRouter, service: GatewayService) -> None:
    @router.get("/jobs", response_model=JobList, responses=problems(401, 403, 422, 429, 503), tags=["jobs"])
    async def list_jobs(
        request: Request,
        before: Annotated[int | None, Query(ge=0, le=2**53, description="`next` of the page before.")] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        """The newest jobs of this API key, or of all with the scope `admin`; only with an API key."""
        key = _key_of(request)
        service.read_quota.spend(key)
        if not key.key_id:
            raise Problem(403, "not-allowed", "Jobs are listed to holders of an API key only.")
        found = await service.listed(key, before, limit)
        more = found[-1].number if len(found) == limit else None
        return _json({"jobs": [job_documents.summary(status) for status in found], "next": more})

    @router.delete("/jobs/{job_id}", response_model=JobSummary, responses=READING, tags=["jobs"])
    async def cancel_job(request: Request, job_id: JOB_ID) -> Response:
        """End a job: nothing more is fetched for it, and what comes in after this is thrown away."""
        key = _key_of(request)
        return _json(job_documents.summary(await service.cancel(key, job_id)))


def _add_streams(router: APIRouter, service: GatewayService, room_for: RoomFor) -> None:
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
        key = _key_of(request)
        service.read_quota.spend(key)
        status = await service.see(key, job_id)
        if accept is not None and NDJSON in accept:
            return StreamingResponse(lines(service, key, job_id, cursor), media_type=NDJSON)
        page = await service.items(key, job_id, cursor, limit)
        following = page.cursor if page.cursor is not None or status.has_ended else cursor
        answer = _json({"items": [record(item) for item in page.items], "next": following})
        check_room(room_for, bytes(answer.body))
        return answer

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
        key = _key_of(request)
        service.read_quota.spend(key)
        status = await service.see(key, job_id)
        known = int(last_event_id) if last_event_id and _VERSION.fullmatch(last_event_id) else None
        service.check_waiting()
        return StreamingResponse(
            events(service, key, status, known),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store"},
        )


def _add_health(router: APIRouter, service: GatewayService) -> None:
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


def _add_about(router: APIRouter, metrics: Metrics, documentation: Documentation) -> None:
    @router.get("/scrapers", response_model=list[Offered], responses=problems(401, 503), tags=["about"])
    async def list_scrapers(request: Request) -> Response:
        """What jobs can be submitted for, with this API key."""
        shown = [(name, documentation.served[name].scraper.input) for name in documentation.shown_to(_key_of(request))]
        return _json(
            [
                {
                    "name": name,
                    "path": f"/{name}" if name in documentation.named else None,
                    "input": model.model_json_schema() if model else None,
                }
                for name, model in shown
            ]
        )

    @router.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {}}}, **problems(401, 403)},
        tags=["about"],
    )
    async def show_metrics(request: Request) -> Response:
        """Figures for Prometheus, about the jobs of all: with API keys, for the scopes `metrics` and `admin`."""
        key = _key_of(request)
        if key.key_id:
            require(key, Scope.METRICS)
        return Response(metrics.page(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @router.get("/openapi.json", include_in_schema=False)
    async def show_document(request: Request) -> Response:
        """The documentation of all routes, for programs."""
        return _json(documentation.document(_key_of(request), router))

    @router.get("/docs", include_in_schema=False)
    async def show_handbook(request: Request) -> Response:
        """And for people."""
        page = handbook(documentation.document(_key_of(request), router))
        return Response(page, media_type="text/html", headers={"Content-Security-Policy": POLICY})


def _json(document: Any) -> Response:
    return Response(msgspec.json.encode(document), media_type="application/json")

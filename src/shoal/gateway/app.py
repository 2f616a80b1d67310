"""The HTTP application, put together: FastAPI for documentation and ordinary routes, the fast routes in front of it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException

from shoal.core import log_events
from shoal.core.version import __version__
from shoal.gateway.http import fast_routes
from shoal.gateway.http.answer import Answer, Problem
from shoal.gateway.http.asgi import ClientGone, Receive, Scope, Send, send_answer
from shoal.gateway.http.files import serve_files
from shoal.gateway.http.openapi import declare_fast_routes, openapi_of
from shoal.gateway.http.routes import add_handbook, routes
from shoal.gateway.limits.retry_spread import LOOKS, SUBMISSIONS, RetrySpread
from shoal.gateway.metrics import Metrics
from shoal.gateway.service import GatewayService

TAKEN = frozenset({"jobs", "results", "health", "metrics", "scrapers", "docs", "static"})
"""First steps of paths that are ours: a scraper of such a name is served by `POST /jobs` only."""

KINDS = {404: "not-found", 405: "method-not-allowed"}

log = structlog.get_logger("shoal")


class Gateway:
    """The ASGI application. Hot routes are found by the first step of the path; everything else is FastAPI's."""

    def __init__(self, service: GatewayService) -> None:
        self._service = service
        self._named = {name for name, each in service.served.items() if each.scraper.input and name not in TAKEN}
        self._own = TAKEN | self._named
        self._metrics = Metrics(service)
        self._submissions, self._looks = RetrySpread(SUBMISSIONS, service.clock), RetrySpread(LOOKS, service.clock)
        self._ordinary = ordinary_app(service, self._metrics, self._named)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = self._as_meant(scope)
        route, answering = self._fast(scope, receive)
        if answering is None:
            await self._ordinary(scope, receive, self._counting(send))
            return
        try:
            answer = await answering
        except Problem as problem:
            answer = self._turned_away(scope, problem) if problem.status == 503 else problem.answer()
        except ClientGone:
            return
        except Exception:
            log.exception(log_events.GATEWAY_FAILED, route=route)
            answer = broken().answer()
        self._metrics.count(route, answer.status)
        await send_answer(send, answer, receive if answer.status == 413 else None)

    def _as_meant(self, scope: Scope) -> Scope:
        """A slash at the end means nothing here, and whoever asks with HEAD is told what GET would be: the server
        leaves the body out. Not of a stream of events, which would be awaited to its end."""
        path, method = scope["path"], scope["method"]
        if path.endswith("/") and path.split("/")[1] in self._own:
            path = path.rstrip("/")
        if method == "HEAD" and not path.endswith("/events"):
            method = "GET"
        if path == scope["path"] and method == scope["method"]:
            return scope
        return {**scope, "path": path, "method": method}

    def _fast(self, scope: Scope, receive: Receive) -> tuple[str, Awaitable[Answer] | None]:
        path: str = scope["path"]
        if scope["method"] == "POST":
            name = path[1:]
            if name in self._named:
                return path, fast_routes.submit_input(self._service, scope, receive, name)
            if name == "jobs":
                return path, fast_routes.submit_job(self._service, scope, receive)
        elif scope["method"] == "GET":
            first, _, job_id = path[1:].partition("/")
            if job_id and "/" not in job_id and first in ("results", "jobs"):
                return f"/{first}/{{job_id}}", fast_routes.show_job(self._service, scope, job_id)
        return "", None

    def _turned_away(self, scope: Scope, problem: Problem) -> Answer:
        return (self._submissions if scope["method"] == "POST" else self._looks).answer(problem)

    def _counting(self, send: Send) -> Send:
        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._metrics.count("other", message["status"])
            await send(message)

        return counted


def application(service: GatewayService) -> Any:
    """The gateway as a server runs it."""
    gateway = Gateway(service)
    if not service.options.cors:
        return gateway
    return CORSMiddleware(
        gateway,
        allow_origins=list(service.options.cors),
        allow_methods=["GET", "POST", "DELETE"],
        allow_headers=["*"],
        expose_headers=["ETag", "Location", "Retry-After", "RateLimit", "RateLimit-Policy", "Idempotency-Replayed"],
        max_age=600,
    )


def ordinary_app(service: GatewayService, metrics: Metrics, named: set[str]) -> FastAPI:
    """What is not in a hurry."""
    app = FastAPI(
        title="Shoal",
        version=__version__,
        summary="Jobs over HTTP: submit, poll or wait, and get the results.",
        docs_url=None,
        redoc_url=None,
    )
    app.include_router(routes(service, metrics, named))
    declare_fast_routes(app, service.served, named)
    add_handbook(app)
    serve_files(app, service.options.static)
    app.openapi = lambda: openapi_of(app)  # type: ignore[method-assign]
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_bad_request)
    app.add_exception_handler(Exception, _on_error)
    return app


def broken() -> Problem:
    """Our own fault."""
    return Problem(500, "internal-error", "This should not have happened. It has been logged.")


def _sent(problem: Problem) -> Response:
    answer = problem.answer()
    headers = {str(name, "latin-1"): str(value, "latin-1") for name, value in answer.headers}
    return Response(answer.body, answer.status, headers, str(answer.kind, "latin-1"))


async def _on_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)  # noqa: S101 - FastAPI's type of handlers is wider than what it calls them with
    return _sent(error)


async def _on_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - as above
    headers = tuple((name.lower().encode(), value.encode()) for name, value in (error.headers or {}).items())
    detail = "There is nothing here." if error.status_code == 404 else f"{error.detail}."
    return _sent(Problem(error.status_code, KINDS.get(error.status_code, "bad-request"), detail, headers=headers))


async def _on_bad_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - as above
    fields = [{"field": ".".join(map(str, each["loc"][1:])), "problem": each["msg"]} for each in error.errors()]
    detail = f"The request is wrong: {fields[0]['field']}: {fields[0]['problem']}."
    return _sent(Problem(422, "bad-request", detail, errors=fields))


async def _on_error(_: Request, error: Exception) -> Response:
    log.error(log_events.GATEWAY_FAILED, exc_info=error)
    return _sent(broken())

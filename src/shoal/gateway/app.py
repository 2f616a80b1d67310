"""The HTTP application, put together: the perimeter, the fast routes, FastAPI for ordinary ones, and files."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException

from shoal.core import log_events
from shoal.gateway.http import fast_routes
from shoal.gateway.http.answer import Answer, Problem
from shoal.gateway.http.asgi import CLOSE, Receive, Scope, Send, UnfinishedBodies, read_body, send_answer
from shoal.gateway.http.files import Files, folder_of_ours
from shoal.gateway.http.openapi import Documentation
from shoal.gateway.http.routes import KEY, routes
from shoal.gateway.http.streams import StreamCut
from shoal.gateway.limits.keyring import require
from shoal.gateway.limits.keys import Scope as KeyScope
from shoal.gateway.limits.retry_spread import LOOKS, SUBMISSIONS, RetrySpread
from shoal.gateway.metrics import Metrics
from shoal.gateway.perimeter.caller import ClientGone, caller_of
from shoal.gateway.perimeter.perimeter import ROUTE, AdmittedRequest, Destination, Perimeter
from shoal.gateway.perimeter.unread_answers import RoomFor, check_room
from shoal.gateway.perimeter.visitors import Visitors
from shoal.gateway.service import GatewayService

TAKEN = frozenset({"jobs", "results", "health", "metrics", "scrapers", "docs", "openapi.json", "static"})
"""First steps of paths that are ours: a scraper of such a name is served by `POST /jobs` only."""

KINDS = {404: "not-found", 405: "method-not-allowed"}
OTHER = "other"
"""What all but the fast routes are called in figures."""

log = structlog.get_logger("shoal")


class Gateway:
    """The ASGI application. `room_for`: whether so many bytes can be held for a client that may be slow to read."""

    def __init__(self, service: GatewayService, room_for: RoomFor = lambda _: True) -> None:
        options = service.options
        self._service = service
        self._named = {name for name, each in service.served.items() if each.scraper.input and name not in TAKEN}
        self._metrics = Metrics(service)
        self._submissions, self._looks = RetrySpread(SUBMISSIONS, service.clock), RetrySpread(LOOKS, service.clock)
        self._perimeter = Perimeter(
            service.keys,
            Visitors(options.hosts, options.cors),
            TAKEN | self._named,
            files=options.static is not None,
        )
        self._unfinished = UnfinishedBodies()
        self._room_for = room_for
        self._ordinary = ordinary_app(service, self._metrics, self._named, room_for)
        self._our_files = folder_of_ours()
        self._files = None if options.static is None else Files(directory=options.static, html=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route, caller = OTHER, caller_of(scope)
        try:
            entry = await self._perimeter.enter(scope)
            route, answering = self._fast(entry, scope, receive)
            if answering is None:
                await self._elsewhere(entry, scope, receive, self._counting(send, heard=caller.heard))
                return
            answer = await answering
            check_room(self._room_for, answer.body)
        except Problem as problem:
            answer = self._turned_away(scope, problem) if problem.status == 503 else problem.answer()
        except ClientGone:
            return
        except Exception:
            log.exception(log_events.GATEWAY_FAILED, route=route)
            answer = broken().answer()
        self._metrics.count(route, answer.status)
        await send_answer(send, answer, None if caller.heard else receive)

    def _fast(self, entry: AdmittedRequest, scope: Scope, receive: Receive) -> tuple[str, Awaitable[Answer] | None]:
        """Who answers, if the request is for a fast route, and what the route is called in figures."""
        path, method = entry.path, entry.method
        if entry.destination is not ROUTE:
            return OTHER, None
        first, _, rest = path[1:].partition("/")
        if rest and "/" not in rest and first in ("results", "jobs"):
            if method == "GET":
                return f"/{first}/{{job_id}}", fast_routes.show_job(self._service, scope, entry.key, rest)
            if first == "results":
                raise _only(b"GET, HEAD")
        elif not rest and method == "POST" and (first == "jobs" or first in self._named):
            return path, self._submit(entry, scope, receive, first)
        elif not rest and first in self._named:
            raise _only(b"POST")
        return OTHER, None

    async def _submit(self, entry: AdmittedRequest, scope: Scope, receive: Receive, name: str) -> Answer:
        """A submission, whose body nobody waits for if it would be refused anyway."""
        service, key = self._service, entry.key
        require(key, KeyScope.SUBMIT)
        service.submissions.check()
        body = await read_body(scope, receive, service.options.max_body, unfinished=self._unfinished)
        if name == "jobs":
            return await fast_routes.submit_job(service, scope, key, body)
        return await fast_routes.submit_input(service, scope, key, body, name)

    async def _elsewhere(self, entry: AdmittedRequest, scope: Scope, receive: Receive, send: Send) -> None:
        """To FastAPI, which has ordinary routes and nothing else, or to a file."""
        meant = {**scope, "path": entry.path, "method": entry.method, KEY: entry.key}
        try:
            match entry.destination:
                case Destination.ROUTE:
                    await self._ordinary(meant, receive, send)
                case Destination.OUR_FILES:
                    await self._our_files({**meant, "path": entry.path.removeprefix("/static")}, receive, send)
                case Destination.FILES if self._files is not None:
                    await self._files(meant, receive, send)
        except HTTPException as error:
            raise http_problem(error) from None
        except (ClientGone, Problem):
            raise
        except Exception:
            if entry.destination is not ROUTE:
                raise
            # FastAPI has logged and answered it, and raises it once more

    def _turned_away(self, scope: Scope, problem: Problem) -> Answer:
        return (self._submissions if scope["method"] == "POST" else self._looks).answer(problem)

    def _counting(self, send: Send, *, heard: bool) -> Send:
        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._metrics.count(OTHER, message["status"])
                if not heard:
                    message = {**message, "headers": [*message.get("headers", ()), CLOSE]}
            await send(message)

        return counted


def application(service: GatewayService, room_for: RoomFor = lambda _: True) -> Any:
    """The gateway as a server runs it."""
    gateway = Gateway(service, room_for)
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


def ordinary_app(service: GatewayService, metrics: Metrics, named: set[str], room_for: RoomFor) -> FastAPI:
    """What is not in a hurry. No route of it takes a body, and a path leads to one or it does not."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    app.include_router(routes(service, metrics, Documentation(service.served, named), room_for))
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_bad_request)
    app.add_exception_handler(Exception, _on_error)
    return app


def broken() -> Problem:
    """Our own fault."""
    return Problem(500, "internal-error", "This should not have happened. It has been logged.")


def _only(methods: bytes) -> Problem:
    return Problem(405, KINDS[405], "Method Not Allowed.", headers=((b"allow", methods),))


def http_problem(error: HTTPException) -> Problem:
    """What Starlette has to say, as we say it."""
    headers = tuple((name.lower().encode(), value.encode()) for name, value in (error.headers or {}).items())
    detail = "There is nothing here." if error.status_code == 404 else f"{error.detail}."
    return Problem(error.status_code, KINDS.get(error.status_code, "bad-request"), detail, headers=headers)


def _sent(problem: Problem) -> Response:
    answer = problem.answer()
    headers = {str(name, "latin-1"): str(value, "latin-1") for name, value in answer.headers}
    return Response(answer.body, answer.status, headers, str(answer.kind, "latin-1"))


async def _on_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)  # noqa: S101 - FastAPI's type of handlers is wider than what it calls them with
    return _sent(error)


async def _on_http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - as above
    return _sent(http_problem(error))


async def _on_bad_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - as above
    fields = [{"field": ".".join(map(str, each["loc"][1:])), "problem": each["msg"]} for each in error.errors()]
    detail = f"The request is wrong: {fields[0]['field']}: {fields[0]['problem']}."
    return _sent(Problem(422, "bad-request", detail, errors=fields))


async def _on_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, StreamCut):
        log.error(log_events.GATEWAY_FAILED, exc_info=error)
    return _sent(broken())

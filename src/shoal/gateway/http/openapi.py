"""The OpenAPI document: all routes as FastAPI describes them, those of each key. No request comes here."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Set
from typing import Annotated, Any

from fastapi import APIRouter, Body, FastAPI, Header, Path, Query

from shoal.core.version import __version__
from shoal.gateway.http.models import CALLBACK, AcceptedDocument, JobDocument, JobRequest, ProblemDocument
from shoal.gateway.jobs.prepare import ServedScraper
from shoal.gateway.limits.keys import ApiKey

JOB_ID = Annotated[str, Path(description="As the submission was answered.")]
PROBLEMS = {
    400: "The request cannot be understood.",
    401: "An API key is needed, and was not given or is not good.",
    403: "The API key does not allow this.",
    404: "There is no such thing, or none that this API key may see.",
    410: "The results have been deleted; their time was over.",
    413: "The body is too large.",
    422: "The request can be understood, but what it asks for cannot be.",
    429: "The API key has used up its jobs, or its looks, for this minute.",
    503: "Not at the moment; `Retry-After` says when to come back.",
}


MOST_KEPT = 64


class Documentation:
    """The document for each key: with the scrapers that it is for, and not a word of others.

    `named`: scrapers that have a path of their own.
    """

    def __init__(self, served: Mapping[str, ServedScraper], named: Set[str]) -> None:
        self.served = served
        self.named = named
        self._kept: dict[frozenset[str], dict[str, Any]] = {}

    def shown_to(self, key: ApiKey) -> list[str]:
        """The names of the scrapers that this key is for."""
        return sorted(name for name in self.served if key.scrapers is None or name in key.scrapers)

    def document(self, key: ApiKey, ordinary: APIRouter) -> dict[str, Any]:
        """The OpenAPI document, of the ordinary routes and of those that are none of FastAPI's."""
        names = frozenset(self.shown_to(key)) & self.named
        found = self._kept.get(names)
        if found is None:
            app = FastAPI(
                title="Shoal",
                version=__version__,
                summary="Jobs over HTTP: submit, poll or wait, and get the results.",
            )
            app.include_router(ordinary)
            _declare_fast_routes(app, self.served, names)
            found = _document_of(app)
            if len(self._kept) < MOST_KEPT:
                self._kept[names] = found
        return found


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route may fail."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": PROBLEMS[status], "content": {"application/problem+json": {"schema": schema}}}
        for status in statuses
    }


SUBMITTING = problems(400, 401, 403, 404, 413, 422, 429, 503)
READING = problems(401, 403, 404, 410, 422, 429, 503)

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[ -~]+$",
        description="A submission that is sent again with the same key is the same job. Without an API key: a UUID.",
    ),
]
IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match", description="The ETag of what you have.")]
CallbackQuery = Annotated[str | None, Query(description=CALLBACK)]
Wait = Annotated[
    float | None,
    Query(
        ge=0,
        description="Seconds to wait for the end of the job; with If-None-Match, for any change.",
    ),
]


def _declare_fast_routes(app: FastAPI, served: Mapping[str, ServedScraper], named: Set[str]) -> None:
    """Describe the fast routes to FastAPI."""
    for name in sorted(named):
        scraper = served[name].scraper
        app.post(
            f"/{name}",
            status_code=202,
            response_model=AcceptedDocument,
            responses=SUBMITTING,
            tags=["submit"],
            summary=f"Submit a job for {name}",
            operation_id=f"submit_{name}",
        )(_taking(scraper.input, callback=True))
    app.post(
        "/jobs",
        status_code=202,
        response_model=AcceptedDocument,
        responses=SUBMITTING,
        tags=["submit"],
        summary="Submit a job for any scraper",
    )(_taking(JobRequest))
    for path, word in (("/results/{job_id}", "results"), ("/jobs/{job_id}", "job")):
        app.get(
            path,
            response_model=JobDocument,
            responses={304: {"description": "Nothing has changed."}, **READING},
            tags=["jobs"],
            summary="How a job stands, and its results once it has ended",
            operation_id=f"show_{word}",
        )(_show)


def _taking(model: Any, *, callback: bool = False) -> Callable[..., Awaitable[None]]:
    async def submit(**_: Any) -> None: ...

    parameters = [
        inspect.Parameter("body", inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[model, Body()]),
        inspect.Parameter("idempotency_key", inspect.Parameter.KEYWORD_ONLY, annotation=IdempotencyKey, default=None),
    ]
    if callback:
        parameters.append(
            inspect.Parameter("callback", inspect.Parameter.KEYWORD_ONLY, annotation=CallbackQuery, default=None)
        )
    submit.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return submit


async def _show(job_id: JOB_ID, wait: Wait = None, if_none_match: IfNoneMatch = None) -> None: ...


def _document_of(app: FastAPI) -> dict[str, Any]:
    """The whole document, with the form of problems and the ways to send a key."""
    document = app.openapi()
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas["Problem"] = ProblemDocument.model_json_schema()
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{}, {"key": []}]
    return document

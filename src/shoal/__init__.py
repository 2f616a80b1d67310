"""Shoal: a polite, distributed web-scraping platform. One script on SQLite, or a fleet, with the same code."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.api.auth import BasicAuth, DigestAuth
from shoal.api.form_encoding import FormFile
from shoal.api.page import Page
from shoal.api.reading.selecting import Element, Matches
from shoal.api.reading.tables import Table
from shoal.api.request import Request
from shoal.api.routes import Route
from shoal.api.scraper import Scraper
from shoal.api.sitemap import Sitemap
from shoal.api.webhook_signature import verify_webhook, webhook_secret
from shoal.core.duration import Duration
from shoal.core.task import Hop
from shoal.core.version import __version__
from shoal.errors import (
    BadScraper,
    BadSettings,
    BadTarget,
    BadURL,
    BadWebhook,
    BeingMoved,
    CannotUnseal,
    Drop,
    EngineBroken,
    EngineError,
    EngineFull,
    EngineRefused,
    EngineUnavailable,
    GatewayError,
    GatewayUnavailable,
    JobFailed,
    JobUnfinished,
    NeedsAnotherLease,
    NoStore,
    PageTooComplex,
    RequestRefused,
    Retry,
    ShoalError,
    StartRefused,
    TooLate,
    TorFailed,
    UnknownJob,
    UnknownRun,
    Unstorable,
    UsageError,
)

if TYPE_CHECKING:
    from shoal.client.asynchronous import AsyncClient
    from shoal.client.blocking import Client
    from shoal.client.job import Job, JobItem, RefusedURL
    from shoal.delivery.lease_client import LeaseClient
    from shoal.delivery.open import open_leases
    from shoal.delivery.options import LeaseOptions
    from shoal.runs.blocking_orchestrator import Orchestrator
    from shoal.runs.orchestrator import AsyncOrchestrator
    from shoal.runs.results import RunResult, RunStatus

__all__ = [
    "AsyncClient",
    "AsyncOrchestrator",
    "BadScraper",
    "BadSettings",
    "BadTarget",
    "BadURL",
    "BadWebhook",
    "BasicAuth",
    "BeingMoved",
    "CannotUnseal",
    "Client",
    "DigestAuth",
    "Drop",
    "Duration",
    "Element",
    "EngineBroken",
    "EngineError",
    "EngineFull",
    "EngineRefused",
    "EngineUnavailable",
    "FormFile",
    "GatewayError",
    "GatewayUnavailable",
    "Hop",
    "Job",
    "JobFailed",
    "JobItem",
    "JobUnfinished",
    "LeaseClient",
    "LeaseOptions",
    "Matches",
    "NeedsAnotherLease",
    "NoStore",
    "Orchestrator",
    "Page",
    "PageTooComplex",
    "RefusedURL",
    "Request",
    "RequestRefused",
    "Retry",
    "Route",
    "RunResult",
    "RunStatus",
    "Scraper",
    "ShoalError",
    "Sitemap",
    "StartRefused",
    "Table",
    "TooLate",
    "TorFailed",
    "UnknownJob",
    "UnknownRun",
    "Unstorable",
    "UsageError",
    "__version__",
    "open_leases",
    "verify_webhook",
    "webhook_secret",
]


_LATER = {
    "AsyncClient": "shoal.client.asynchronous",
    "AsyncOrchestrator": "shoal.runs.orchestrator",
    "Client": "shoal.client.blocking",
    "Job": "shoal.client.job",
    "JobItem": "shoal.client.job",
    "Orchestrator": "shoal.runs.blocking_orchestrator",
    "RunResult": "shoal.runs.results",
    "RunStatus": "shoal.runs.results",
    "LeaseClient": "shoal.delivery.lease_client",
    "LeaseOptions": "shoal.delivery.options",
    "RefusedURL": "shoal.client.job",
    "open_leases": "shoal.delivery.open",
}


def __getattr__(name: str) -> Any:
    """Clients and orchestrators bring much along (HTTP, the worker, the engines): loaded only for those who ask."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

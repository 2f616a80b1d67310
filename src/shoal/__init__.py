"""Shoal: a polite, distributed web-scraping platform. One script on SQLite, or a fleet, with the same code."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.errors import Drop, Retry
from shoal.page import Page
from shoal.request import Request
from shoal.routes import Route
from shoal.scraper import Scraper
from shoal.sitemap import Sitemap
from shoal.version import __version__
from shoal.webhook import verify_webhook, webhook_secret

if TYPE_CHECKING:
    from shoal.client.asynchronous import AsyncClient
    from shoal.client.blocking import Client
    from shoal.orchestrator import AsyncOrchestrator, Orchestrator

__all__ = [
    "AsyncClient",
    "AsyncOrchestrator",
    "Client",
    "Drop",
    "Orchestrator",
    "Page",
    "Request",
    "Retry",
    "Route",
    "Scraper",
    "Sitemap",
    "__version__",
    "verify_webhook",
    "webhook_secret",
]


_LATER = {
    "AsyncClient": "shoal.client.asynchronous",
    "AsyncOrchestrator": "shoal.orchestrator",
    "Client": "shoal.client.blocking",
    "Orchestrator": "shoal.orchestrator",
}


def __getattr__(name: str) -> Any:
    """Clients and orchestrators bring much along (HTTP, the worker, the engines): loaded only for those who ask."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

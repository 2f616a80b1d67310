"""Shoal: a polite, distributed web-scraping platform. One script on SQLite, or a fleet, with the same code."""

from typing import TYPE_CHECKING, Any

from shoal.errors import Drop, Retry
from shoal.page import Page
from shoal.request import Request
from shoal.routes import Route
from shoal.scraper import Scraper
from shoal.sitemap import Sitemap
from shoal.version import __version__

if TYPE_CHECKING:
    from shoal.orchestrator import AsyncOrchestrator, Orchestrator

__all__ = [
    "AsyncOrchestrator",
    "Drop",
    "Orchestrator",
    "Page",
    "Request",
    "Retry",
    "Route",
    "Scraper",
    "Sitemap",
    "__version__",
]


def __getattr__(name: str) -> Any:
    """The orchestrators bring the worker, the engines and the settings along: loaded only for those who ask."""
    if name in ("AsyncOrchestrator", "Orchestrator"):
        from shoal import orchestrator  # noqa: PLC0415 - see above

        return getattr(orchestrator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

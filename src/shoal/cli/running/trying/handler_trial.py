"""What a handler yields for one page, without anything being stored."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.api.yields import collect
from shoal.config.settings import mask_url
from shoal.errors import Drop, Retry
from shoal.intake.admission import Refused, admit
from shoal.work.task.failure_report import traceback_of, where

if TYPE_CHECKING:
    from shoal.api.handler import Handler
    from shoal.api.page import Page
    from shoal.api.request import Request
    from shoal.api.scraper import Scraper


@dataclass(slots=True)
class HandlerTrial:
    """One handler of a scraper, and what it made of the page. `failure`: None = it ended well."""

    scraper: Scraper
    handler: Handler
    items: list[Any] = field(default_factory=list)
    requests: list[dict[str, Any]] = field(default_factory=list)
    failure: str | None = None
    traceback: str | None = None

    async def read(self, page: Page) -> None:
        """Call it, as a worker would."""
        try:
            collected = await collect(self.handler.function(page), self.handler, page.url)
            self.items = [msgspec.json.decode(item) for item in collected.items]
            self.requests = [self._told(request, page) for request in collected.requests]
        except (KeyboardInterrupt, asyncio.CancelledError):
            raise
        except (Drop, Retry) as error:
            self.failure = f"it raised {type(error).__name__}: {error.reason}"
        except Exception as error:  # noqa: BLE001 - whatever a user's handler raises is what this is about
            text = " ".join(str(error).split())
            self.failure = f"{type(error).__name__}: {text} ({where(error, self.handler)})"
            self.traceback = traceback_of(error, self.handler)

    def _told(self, request: Request, page: Page) -> dict[str, Any]:
        """A request as JSON has it. `refused`: why it would not be made; None = it would."""
        task = admit(request, self.scraper, page.depth, page.group)
        refused = task.reason if isinstance(task, Refused) else None
        return {
            "url": mask_url(task.url), "to": request.to, "method": request.method, "data": request.data,
            "refused": refused,
        }  # fmt: skip

    def as_dict(self) -> dict[str, Any]:
        """All of it."""
        return {"items": self.items, "requests": self.requests, "failure": self.failure, "traceback": self.traceback}

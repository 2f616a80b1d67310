"""A request: what a handler yields to have something fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.core.duration import Duration
from shoal.core.task import Kind


class Request(msgspec.Struct, frozen=True):
    """One request to be made.

    `to`: label of the handler that reads the answer (None = the default handler).
    `data`: anything that JSON can hold, handed to that handler as `page.data`.
    `group`: results are grouped by it; inherited by what the handler yields, unless it says otherwise.
    `priority`: higher goes first within its site (0). `ttl`: how long it is worth fetching.
    What is None here is as the scraper's routes say.
    `dedup`: False = fetch even if this run has seen the URL.
    `every`: how long after a visit it is visited again, as long as the run goes on (None = as the scraper says).
    Durations are numbers of seconds, or texts such as `"6h"`.
    """

    url: str
    to: str | None = None
    data: Any = None
    group: str | None = None
    priority: int | None = None
    lane: str | None = None
    ttl: Duration | None = None
    method: str = "GET"
    headers: Mapping[str, str] | None = None
    body: bytes | str | None = None
    dedup: bool = True
    kind: Kind = Kind.PAGE
    every: Duration | None = None

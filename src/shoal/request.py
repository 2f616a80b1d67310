"""What a handler yields to have something fetched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.task import Kind


class Request(msgspec.Struct, frozen=True):
    """One request to be made.

    `to`: label of the handler that reads the answer (None = the default handler).
    `data`: anything that JSON can hold, handed to that handler as `page.data`.
    `group`: results are grouped by it; inherited by what the handler yields, unless it says otherwise.
    `priority`: higher goes first within its site. `ttl`: seconds after which it is no longer worth fetching.
    `dedup`: False = fetch even if this run has seen the URL.
    """

    url: str
    to: str | None = None
    data: Any = None
    group: str | None = None
    priority: int = 0
    lane: str | None = None
    ttl: float | None = None
    method: str = "GET"
    headers: Mapping[str, str] | None = None
    body: bytes | str | None = None
    dedup: bool = True
    kind: Kind = Kind.PAGE

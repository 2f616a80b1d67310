"""A request: what a handler yields to have something fetched."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypedDict

import msgspec

from shoal.api.form_encoding import FormFields
from shoal.core.duration import Duration
from shoal.core.task import Kind


class Request(msgspec.Struct, frozen=True):
    """One request to be made.

    `to`: label of the handler that reads the answer (None = the default handler).
    `data`: anything that JSON can hold, handed to that handler as `page.data`.
    `group`: results are grouped by it; inherited by what the handler yields, unless it says otherwise.
    `priority`: higher goes first within its site (0). `ttl`: how long it is worth fetching.
    What is None here is as the scraper's routes say.
    `dedup`: False = fetch even if this run has seen the URL (for other methods than GET: with this body).
    `every`: how long after a visit it is visited again, as long as the run goes on (None = as the scraper says).
    `json`: sent as the body, as JSON. `form`: fields that are sent as the body, as a form sends them: a mapping (or
    pairs) of names and texts, numbers, FormFiles, or lists of these. With either, the method is POST unless another is
    named.
    `cookies`: sent with this request, beside those that the site has set.
    `timeout`: most time for the request, at most that of the scraper (None = that). `accept`: statuses besides 2xx that
    are handed to the handler; `redirects`: whether redirects are followed (None = as the handler or the scraper says).
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
    json: Any = None
    form: FormFields | None = None
    cookies: Mapping[str, str] | None = None
    timeout: Duration | None = None
    accept: Collection[int] | None = None
    redirects: bool | None = None


class TaskOptions(TypedDict, total=False):
    """What can be said of any request that a page leads to; each as in Request."""

    data: Any
    group: str | None
    priority: int | None
    lane: str | None
    ttl: Duration | None
    dedup: bool
    every: Duration | None
    headers: Mapping[str, str] | None
    cookies: Mapping[str, str] | None
    timeout: Duration | None
    accept: Collection[int] | None
    redirects: bool | None


class RequestOptions(TaskOptions, total=False):
    """The same, and what a form says itself."""

    method: str
    body: bytes | str | None
    json: Any
    form: FormFields | None

"""Jobs as a client of the gateway has them."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

JobState = Literal["queued", "processing", "complete", "failed", "cancelled"]


class RefusedURL(msgspec.Struct, frozen=True):
    """A URL that was not or could not be read, and why."""

    url: str
    reason: str


class Job(msgspec.Struct, frozen=True):
    """How a job stands. What an answer does not speak of is None (or empty).

    `progress`: as in `2/3 items completed`. `position`: its place in the queue, from 1; `estimated_time`: seconds until
    its end, as far as can be told; `poll_after`: seconds after which it is worth asking again; all three only until
    the end.
    `results`: items by group, or a list where there are no groups; None before the end, and when they are too many for
    one answer (then `results_at` is set, and `items` of the client reads them).
    `error`: why it failed. `errors`: pages that could not be read, the first few. `refused`: URLs of a submission that
    will not be fetched.
    """

    job_id: str
    status: JobState
    scraper: str | None = None
    progress: str | None = None
    items: int = 0
    created_at: str | None = None
    ended_at: str | None = None
    expires_at: str | None = None
    position: int | None = None
    estimated_time: float | None = None
    poll_after: float | None = None
    results: dict[str, list[Any]] | list[Any] | None = None
    results_at: str | None = None
    error: str | None = None
    errors: tuple[RefusedURL, ...] = ()
    refused: tuple[RefusedURL, ...] = ()

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        return self.status not in ("queued", "processing")


class JobItem(msgspec.Struct, frozen=True):
    """An item with the group and the page it came from."""

    group: str | None
    url: str
    item: Any


class JobItemPage(msgspec.Struct, frozen=True):
    """Some records; `next` leads on."""

    items: list[JobItem]
    next: int | None


class JobPage(msgspec.Struct, frozen=True):
    """Some jobs, newest first; `next` leads on."""

    jobs: list[Job]
    next: int | None

"""Items as engines store them: those of a page in one batch, which is a JSON array."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from shoal.frontier.contract.reader import Item, ItemPage

_batch = msgspec.json.Decoder(list[msgspec.Raw]).decode


def items_of(url: str, group: str | None, body: str | bytes) -> list[Item]:
    """The items of a batch."""
    return [Item(url, group, raw) for raw in _batch(body)]


def item_page(rows: Iterable[Sequence[Any]], limit: int) -> ItemPage:
    """A page from batches in their order (number, url, group, body), up to the one that makes `limit` items or more."""
    items: list[Item] = []
    last: int | None = None
    for number, url, group, body in rows:
        items += items_of(url, group, body)
        last = number
        if len(items) >= limit:
            break
    return ItemPage(items, last)


def items_by_job(rows: Iterable[Sequence[Any]], most: int) -> dict[str, list[Item]]:
    """Items of jobs from batches in their order (job id, url, group, body), at most so many of each job.

    A job that has none is there with a row that has no body.
    """
    found: dict[str, list[Item]] = {}
    for job_id, url, group, body in rows:
        items = found.setdefault(job_id, [])
        if body is not None and len(items) < most:
            items += items_of(url, group, body)[: most - len(items)]
    return found

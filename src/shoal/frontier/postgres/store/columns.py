"""What the functions of the store take: each class here is a composite type of `sql/types`, field by field.

A call is written with the fields of these classes (`ROW($1, $2, …)::settlements`), and the types are declared with the
same ones, so that names are what both sides go by. A test holds the two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, TypeVar

import msgspec

Record = TypeVar("Record", bound=msgspec.Struct)

encode = msgspec.json.encode


class Composite(msgspec.Struct, frozen=True, gc=False):
    """A value of one of the store's own types. Of lists, each holds one field of all that there are."""


class WorkerFields(Composite, frozen=True, gc=False):
    """Who a worker is. `duties`: as JSON."""

    worker_id: str
    machine: str
    pid: int
    pid_started: int
    notebook: str | None
    duties: str


class ClaimRequest(Composite, frozen=True, gc=False):
    """What a worker wants. `pool`, `exit`: its exits, pool by pool. `tokens`: one for each lease that it may get."""

    scrapers: list[str]
    lanes: list[str]
    queues: list[str] | None
    pool: list[str]
    exit: list[str]
    private: list[str]
    want: int
    ahead: int
    tokens: list[int]
    patient: bool


class NewNotes(Composite, frozen=True, gc=False):
    """Notes, and for how long each is kept."""

    stream: list[str]
    body: list[bytes]
    ttl: list[int | None]


class Settlements(Composite, frozen=True, gc=False):
    """Settlements. Lists may end early where nothing but None would follow."""

    run_id: list[str]
    task: list[int]
    token: list[int]
    kind: list[int]
    started: list[int | None]
    wait: list[int]
    penalty: list[int]
    requests: list[int]
    received: list[int]
    refused: list[int]
    duplicates: list[int]
    crawl_delay: list[int | None]
    url: list[str | None]
    reason: list[str | None]
    group_name: list[str | None]
    n: list[int]
    body: list[bytes | None]
    pace: list[int | None]
    cause: list[str | None]
    aside: list[int]
    extra: list[str | None]


class ExitReports(Composite, frozen=True, gc=False):
    """What settlements tell about exits, each with the position of its settlement."""

    settlement: list[int]
    exit: list[str]
    works: list[bool]


class Byproducts(Composite, frozen=True, gc=False):
    """Notes, entries of the cache and savings of settlements, each with the position of its settlement."""

    note_of: list[int]
    note_stream: list[str]
    note_body: list[bytes]
    note_ttl: list[int | None]
    entry_of: list[int]
    entry_key: list[str]
    entry_value: list[bytes]
    entry_ttl: list[int]
    saved_of: list[int]
    saved_requests: list[int]
    saved_bytes: list[int]


class NewTasks(Composite, frozen=True, gc=False):
    """New tasks. `lane`: with the pool, where a task has one of its own."""

    url: list[str]
    site: list[str]
    key: list[bytes | None]
    lane: list[str]
    handler: list[str | None]
    priority: list[int]
    depth: list[int]
    wait: list[int]
    ttl: list[int | None]
    extra: list[str | None]


class RunFields(Composite, frozen=True, gc=False):
    """A run as it is made: its policy as JSON, and apart from that what the frontier needs of it."""

    run_id: str
    scraper: str
    mode: str
    queue: str
    policy: str
    input: bytes | None
    delay: int
    site_delay: int
    concurrency: int
    pool: str
    lease: int
    hard_timeout: int
    limit_exits: int
    limit_window: int
    crashes: int
    results_ttl: int | None
    lanes: str


class RunKinds(Composite, frozen=True, gc=False):
    """The kinds of runs among jobs that are submitted together."""

    scraper: list[str]
    mode: list[str]
    queue: list[str]
    policy: list[str]
    delay: list[int]
    site_delay: list[int]
    concurrency: list[int]
    pool: list[str]
    lease: list[int]
    hard_timeout: list[int]
    limit_exits: list[int]
    limit_window: list[int]
    crashes: list[int]
    results_ttl: list[int | None]
    lanes: list[str]


class NewJobs(Composite, frozen=True, gc=False):
    """Jobs. `kind`: the position of its kind of run. `busy`: it has tasks. `most`, `window`: its quota."""

    kind: list[int]
    run_id: list[str]
    input: list[bytes | None]
    busy: list[bool]
    owner: list[str]
    key: list[str | None]
    fingerprint: list[bytes]
    most: list[int | None]
    window: list[int | None]
    groups: list[str | None]
    error: list[str | None]
    callback: list[bytes | None]


class SiteRules(Composite, frozen=True, gc=False):
    """The rules that a site begins with."""

    delay: int
    site_delay: int
    concurrency: int
    hard_timeout: int
    lease: int
    limit_exits: int
    limit_window: int


def type_name(kind: type[Composite]) -> str:
    """The name that the store has for a type: `NewTasks` is `new_tasks`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()


def as_sent(column: list[Any]) -> list[Any]:
    """A column as it is sent: one of nothing but None need not be, because the store reads None where a list ends."""
    return [] if column.count(None) == len(column) else column


def counts(column: list[Any]) -> list[Any]:
    """As `as_sent`, for a column where the store takes None for 0."""
    return column if any(column) else []


def turned(rows: list[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """Rows as columns."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def record_reader(kind: type[Record]) -> Callable[[Mapping[str, Any]], Record]:
    """What makes such a record of a row that has its fields, by their names."""
    fields = itemgetter(*kind.__struct_fields__)
    return lambda row: kind(*fields(row))

"""Whatever pages, clients and handlers put into requests and items: what admission lets in, every store holds and gives
back as it was, on its whole way; the rest is refused in so many words."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.api.yields import encode_item
from shoal.core.outcome import Blame, Dead, Done, Dropped, Outcome, Reason, Retried, Settlement, Snoozed
from shoal.core.storable import cleaned
from shoal.core.task import Extra, Lease, NewTask, Policy
from shoal.errors import BadScraper
from shoal.frontier.contract.frontier import Ask, NewRun
from shoal.frontier.contract.jobs import ANY, NewJob, Store
from shoal.frontier.open import open_engine
from shoal.intake.admission import Refused, admit
from shoal.testing.contract.scene import worker
from support.engine_urls import ENGINES, empty_store

TEXT = st.text(st.characters(exclude_categories=()), max_size=40) | st.sampled_from(
    ["a\0b", "\ud800", "x" * 3000, "é" * 512, "\x1f", '"set_back_since":', "\\u0000", "'; --", "{{QUIET}}", "\udcff"]
)
"""Any text at all, and what stores have stumbled over."""

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
HOSTS = st.sampled_from(["a.example", "b.example:8080", "[::1]", "xn--nxasmq6b.example", "a." * 200 + "example"])
URLS = st.builds("https://{}/{}".format, HOSTS, TEXT) | TEXT
REQUESTS = st.builds(
    Request,
    URLS,
    data=st.none() | VALUES,
    group=st.none() | TEXT,
    method=st.sampled_from(["GET", "post"]) | TEXT,
    headers=st.none() | st.dictionaries(st.sampled_from(["A", "Cookie"]) | TEXT, TEXT, max_size=2),
    body=st.none() | TEXT | st.binary(max_size=20),
    dedup=st.booleans(),
)
ITEMS = st.dictionaries(TEXT, VALUES, max_size=3)
FEW = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@pytest.fixture(params=[*ENGINES, "redis in partitions"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    kind, _, apart = request.param.partition(" in ")
    with empty_store(kind, tmp_path) as url:
        engine = await open_engine(f"{url}?partitions=4" if apart else url)
        yield engine
        await engine.close()


def admitted(requests: Sequence[Request]) -> list[NewTask]:
    """What is let in. Whatever else becomes of a request, it is refused, or a mistake that is named."""
    scraper = Scraper("any", delay=0)
    scraper.page(lambda page: None)
    tasks: list[NewTask] = []
    for request in requests:
        try:
            task = admit(request, scraper)
        except BadScraper as error:
            assert "cannot" in str(error)  # noqa: PT017 - any of several sentences
            continue
        if isinstance(task, Refused):
            assert task.reason
        else:
            tasks.append(task)
    return tasks


def encoded(items: Sequence[Any]) -> tuple[bytes, ...]:
    kept = []
    for item in items:
        try:
            kept.append(encode_item(item))
        except TypeError as error:
            assert str(error)  # noqa: PT017 - any of several sentences
    return tuple(kept)


async def claim(store: Store, run_id: str, *settlements: Settlement) -> Sequence[Lease]:
    ask = Ask(worker(), ("any",), ("bulk",), {"default": ("direct",)}, 100, (run_id,), settlements)
    granted = await store.frontier.exchange(ask)
    assert not granted.late
    return granted.leases


def ends(lease: Lease, said: str, items: tuple[bytes, ...], links: Sequence[NewTask]) -> Outcome:
    reason = Reason(Blame.HANDLER, cleaned(said), cleaned(said), cleaned(said))
    group = lease.task.extra.group
    return (
        Done(items, tuple(links), lease.task.url, group),
        Dead(reason),
        Dropped(reason),
        Retried(0, reason),
        Snoozed(0, 0, reason, extra=msgspec.structs.replace(lease.task.extra, limits=1)),
    )[lease.task.id % 5]


@FEW
@given(st.lists(REQUESTS, max_size=6), st.lists(REQUESTS, max_size=3), st.lists(ITEMS, max_size=3), TEXT)
async def test_what_is_let_in_is_held_on_its_whole_way(
    store: Store, requests: list[Request], links: list[Request], items: list[Any], said: str
) -> None:
    run_id = f"any-{secrets.token_hex(6)}"
    tasks, more, kept = admitted(requests), admitted(links), encoded(items)
    await store.frontier.create_run(NewRun(run_id, "any", Policy(delay=0, concurrency=1000)))
    enqueued = await store.frontier.enqueue(run_id, tasks)
    leases = list(await claim(store, run_id))
    assert len(leases) == enqueued.accepted
    known = {(task.url, msgspec.json.encode(task.extra)) for task in tasks}
    assert {(lease.task.url, msgspec.json.encode(lease.task.extra)) for lease in leases} <= known
    while leases:
        over = [
            Settlement(run_id, lease.task.id, lease.token, ends(lease, said, kept, more), lease.claimed_at, 1)
            if not lease.task.attempts and not lease.task.extra.limits
            else Settlement(run_id, lease.task.id, lease.token, Done(), lease.claimed_at, 1)
            for lease in leases
        ]
        leases = list(await claim(store, run_id, *over))
    run = await store.reader.run(run_id)
    assert run.counters.remaining == 0
    found = [bytes(item.body) for item in (await store.reader.items(run_id)).items]
    assert len(found) == run.counters.items
    assert set(found) <= set(kept)
    assert all(letter.reason.text == cleaned(said) for letter in await store.reader.dead(run_id))


@FEW
@given(st.lists(REQUESTS, min_size=1, max_size=6), TEXT)
async def test_what_is_let_in_can_be_a_job(store: Store, requests: list[Request], said: str) -> None:
    run_id = f"any-{secrets.token_hex(6)}"
    run = NewRun(run_id, "any", Policy(delay=0), queue="jobs:any", input=said.encode(errors="replace"))
    tasks = admitted(requests)
    await store.jobs.submit([NewJob(run, tasks, error=None if tasks else cleaned(said))])
    (status,) = await store.jobs.statuses({run_id: ANY, said: ANY})
    assert set(status.groups) == {task.extra.group for task in tasks if task.extra.group}
    assert status.error == (None if tasks else cleaned(said))


def test_the_requests_here_are_often_let_in() -> None:
    assert admitted([Request("https://a.example/", data={"\x1f": ["é"]}, group="é" * 512, headers={"A": "b"})]) != []
    assert admitted([Request("https://a.example/", group="é" * 513)]) == []
    assert Extra().data is None

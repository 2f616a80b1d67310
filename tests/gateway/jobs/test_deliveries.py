"""Deliveries on a store, without HTTP in front: none is lost, and none is made twice."""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_network
from pathlib import Path

import pytest

from shoal import verify_webhook, webhook_secret
from shoal.core.clock import SystemClock
from shoal.core.outcome import Blame
from shoal.core.secrets.box import SecretBox
from shoal.core.task import Policy, RunState
from shoal.errors import EngineFull
from shoal.fetch.guard.rules import Guard
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.contract.jobs import NewJob, Store, Submitted
from shoal.frontier.open import open_engine
from shoal.frontier.sealing import SealedStore
from shoal.frontier.sqlite.jobs import SqliteJobs
from shoal.gateway.http.answer import Problem
from shoal.gateway.jobs.webhooks import Webhooks
from shoal.gateway.limits.store_breaker import StoreBreaker
from shoal.gateway.options import GatewayOptions
from shoal.work.options import WorkerOptions
from support.engine_urls import ENGINES, empty_store
from support.receiver import Receiver, receiving
from support.waiting import until
from support.working import opened


def ended_job(name: str, callback: str, owner: str = "") -> NewJob:
    """A job that has failed before it began, and is to be told of."""
    run = NewRun(name, "cart", Policy(), queue="jobs:cart")
    return NewJob(run, error="no", callback=callback.encode(), owner=owner)


@asynccontextmanager
async def delivering(store: Store) -> AsyncIterator[Webhooks]:
    """Deliveries of a gateway that may go to this machine."""
    options = GatewayOptions(guard=Guard([ip_network("127.0.0.0/8")]))
    webhooks = webhooks_of(store, webhook_secret("shoal_key"), options)
    running = asyncio.ensure_future(webhooks.run())
    yield webhooks
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def webhooks_of(store: Store, secret: str | None, options: GatewayOptions | None = None) -> Webhooks:
    breaker = StoreBreaker(store.reader.now, 20)
    return Webhooks(store, breaker, options or GatewayOptions(), lambda _: secret, SystemClock())


class Full(SqliteJobs):
    """The jobs of a store that takes no more."""

    async def submit(self, jobs: Sequence[NewJob]) -> Sequence[Submitted]:
        raise EngineFull("no space left")


class TestParts:
    async def test_a_delivery_connects_to_public_addresses_only(self, tmp_path: Path) -> None:
        """The door cannot tell where a name will lead: this callback got past it."""
        with receiving() as receiver:
            async with opened(tmp_path) as store:
                await store.jobs.submit([ended_job("cart-1", receiver.url)])
                webhooks = Webhooks(
                    store,
                    StoreBreaker(store.reader.now, 20),
                    GatewayOptions(),
                    lambda _: webhook_secret("shoal_key"),
                    SystemClock(),
                )
                assert await webhooks.dispatch() == 1
                delivering = asyncio.ensure_future(webhooks.run())
                (run,) = [run for run in await store.reader.runs() if run.scraper == "webhooks"]
                letters = await until(lambda: store.reader.dead(run.run_id), "the delivery is a dead letter")
                delivering.cancel()
                await asyncio.gather(delivering, return_exceptions=True)
            assert [(letter.reason.blame, letter.attempts) for letter in letters] == [(Blame.POLICY, 0)]
            assert receiver.got == []

    async def test_a_callback_is_cleared_only_when_its_delivery_is_stored(self, tmp_path: Path) -> None:
        async with opened(tmp_path) as store:
            await store.jobs.submit([ended_job("cart-1", "http://a.example/")])
            good, store.jobs = store.jobs, Full(store.jobs._writer, store.jobs._reader)
            webhooks = Webhooks(
                store, StoreBreaker(store.reader.now, 20), GatewayOptions(), lambda _: None, SystemClock()
            )
            with pytest.raises(Problem):
                await webhooks.dispatch()
            assert len(await store.jobs.callbacks()) == 1
            store.jobs = good
            again = webhooks_of(store, None)
            assert await again.dispatch() == 1
            assert list(await store.jobs.callbacks()) == []

    async def test_a_run_of_deliveries_that_was_cancelled_stops_no_others(self, tmp_path: Path) -> None:
        async with opened(tmp_path) as store:
            webhooks = Webhooks(
                store, StoreBreaker(store.reader.now, 20), GatewayOptions(), lambda _: None, SystemClock()
            )
            waiting: list[list[int]] = []
            for number in range(3):
                await store.jobs.submit([ended_job(f"cart-{number}", f"http://a.example/{number}")])
                assert await webhooks.dispatch() == 1
                runs = [run for run in await store.reader.runs() if run.scraper == "webhooks"]
                waiting.append([run.counters.waiting for run in runs if run.state is RunState.RUNNING])
                if number == 1:
                    await store.frontier.cancel_run(runs[0].run_id)
            assert waiting == [[1], [2], [1]]


class TestReceivers:
    async def test_one_customers_limit_is_not_anothers(self, tmp_path: Path) -> None:
        """A receiver that has had enough of one, until tomorrow, is told of the jobs of the other."""
        with receiving() as receiver:
            async with opened(tmp_path) as store, delivering(store) as webhooks:
                receiver.answers = [429]
                for number, owner in enumerate(["key_one", "key_two"], start=1):
                    await store.jobs.submit([ended_job(f"cart-{number}", receiver.url, owner)])
                    await webhooks.dispatch()
                    await asyncio.to_thread(receiver.wait_for, number)
                    await until(lambda: idle(store), "what was tried is settled")
        told = [verify_webhook("shoal_key", headers, body)["data"]["job_id"] for headers, body in receiver.got]
        assert told == ["cart-1", "cart-2"]

    async def test_one_that_fails_is_asked_ever_more_seldom(self, tmp_path: Path) -> None:
        """Before the first message is tried again, not all of the others have been tried in vain."""
        many = 60
        with receiving() as receiver:
            receiver.answers = [500 for _ in range(10 * many)]
            async with opened(tmp_path) as store, delivering(store) as webhooks:
                await store.jobs.submit([ended_job(f"cart-{number}", receiver.url) for number in range(many)])
                await webhooks.dispatch()
                await until(lambda: repeated(receiver), "one is tried again")
        assert len(receiver.got) < many / 2, len(receiver.got)

    async def test_the_password_of_a_callback_is_sent_and_neither_stored_nor_shown(self, tmp_path: Path) -> None:
        box = SecretBox(lambda: ("k" * 32,))
        options = GatewayOptions(guard=Guard([ip_network("127.0.0.0/8")]), worker=WorkerOptions("Test", secrets=box))
        with receiving() as receiver:
            receiver.answers = [500]
            async with opened(tmp_path) as raw:
                store = SealedStore(raw, box)
                place = receiver.url.replace("://", "://anna:0pen-se%3Aame@")
                await store.jobs.submit([ended_job("cart-1", place, "key_one")])
                kept = (await raw.jobs.callbacks())[0].body
                webhooks = webhooks_of(store, webhook_secret("shoal_key"), options)
                await webhooks.dispatch()
                running = asyncio.ensure_future(webhooks.run())
                await asyncio.to_thread(receiver.wait_for, 1)
                files = await asyncio.to_thread(lambda: b"".join(path.read_bytes() for path in tmp_path.iterdir()))
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
        assert b64decode(receiver.got[0][0]["authorization"].removeprefix("Basic ")) == b"anna:0pen-se:ame"
        for secret in (b"0pen-se", b64encode(b"anna:0pen-se:ame")):
            assert secret not in files + kept


def repeated(receiver: Receiver) -> bool:
    told = [headers["webhook-id"] for headers, _ in receiver.got]
    return len(set(told)) < len(told)


async def idle(store: Store) -> bool:
    return not any(run.counters.leased for run in await store.reader.runs())


@pytest.mark.parametrize("kind", ENGINES)
async def test_two_gateways_at_once_deliver_once_on_every_engine(kind: str, tmp_path: Path) -> None:
    """Both have seen the same ends and both make the deliveries; one of each pair has no effect."""
    secret = webhook_secret("shoal_key")
    options = GatewayOptions(guard=Guard([ip_network("127.0.0.0/8")]))
    with receiving() as receiver, empty_store(kind, tmp_path) as url:
        async with AsyncExitStack() as stack:
            gateways = []
            for _ in range(2):
                store = await open_engine(url)
                stack.push_async_callback(store.close)
                gateways.append(webhooks_of(store, secret, options))
            names = [f"cart-{number}" for number in range(5)]
            await store.jobs.submit([ended_job(name, receiver.url) for name in names])
            seen = [await store.jobs.callbacks() for _ in gateways]
            assert [len(each) for each in seen] == [5, 5]
            await asyncio.gather(*(gateway.dispatch() for gateway in gateways))
            assert list(await store.jobs.callbacks()) == []
            delivering = [asyncio.ensure_future(gateway.run()) for gateway in gateways]
            await asyncio.to_thread(receiver.wait_for, 5)
            (run,) = [run for run in await store.reader.runs() if run.scraper == "webhooks"]

            async def all_done() -> bool:
                return (await store.reader.run(run.run_id)).counters.done == 5

            await until(all_done, "all five are delivered")
            for each in delivering:
                each.cancel()
            await asyncio.gather(*delivering, return_exceptions=True)
            counts = (await store.reader.run(run.run_id)).counters
            assert (counts.done, counts.dead, counts.remaining) == (5, 0, 0)
    told = [verify_webhook(secret, headers, body)["data"]["job_id"] for headers, body in receiver.got]
    assert sorted(told) == names

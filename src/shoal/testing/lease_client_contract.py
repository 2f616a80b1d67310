"""Prove that leases are got and ended as a lease client promises it, on a store of yours.

    class TestMyStore(LeaseClientContract):
        @pytest.fixture
        async def store_url(self) -> AsyncIterator[str]:
            ...  # the URL of an empty store, which `shoal.frontier.open` can open

Whoever gives out leases in another way (as by a queue of tickets) proves it here too, by a fixture `open_client`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from itertools import pairwise
from typing import Any

import pytest

from shoal.core.outcome import Blame, Done, Reason, Retried
from shoal.core.task import NewTask, Policy
from shoal.delivery.held_lease import HeldLease
from shoal.delivery.lease_client import LeaseClient
from shoal.delivery.options import LeaseOptions, LeaseTiming
from shoal.delivery.watcher import LeaseWatcher
from shoal.errors import EngineFull, TooLate, UsageError
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Counters, NewRun
from shoal.frontier.contract.jobs import Store
from shoal.frontier.open import open_engine
from shoal.testing.contract.scene import SHOP, pages
from shoal.testing.faulty_engine import FaultyEngine

QUICK = LeaseTiming(
    poll=(0.005, 0.01), sweep_every=0.05, look_at_leases_every=0.02, renew_every=200, compare_after=(0, 50, 100)
)
PATIENCE = 60.0
"""Seconds after which a test is given up. None depends on speed."""

Opener = Callable[..., AbstractAsyncContextManager[LeaseClient]]


@pytest.mark.asyncio
class LeaseClientContract:
    """Claim, settle, give back, close."""

    @pytest.fixture
    async def engine(self, store_url: str) -> AsyncIterator[Store]:
        engine = await open_engine(store_url)
        yield engine
        await engine.close()

    @pytest.fixture
    def open_client(self) -> Opener:
        """Opens a client on an engine: what is to be proven."""

        def opened(engine: Engine, *, watcher: LeaseWatcher | None = None, **options: Any) -> LeaseClient:
            return LeaseClient(engine, LeaseOptions((SHOP,), **options), timing=QUICK, watcher=watcher)

        return opened

    # Claim and settle

    async def test_what_is_claimed_is_settled_and_the_end_is_told(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, pages("a.example", 5), delay=0)
        async with asyncio.timeout(PATIENCE), open_client(engine, drain=True) as leases:
            async for lease in leases:
                await _ask(lease)
                leases.settle(lease, Done(items=(b'{"n":1}',), url=lease.task.url))
            assert not leases.held
        counts = await _counts(engine)
        assert (counts.done, counts.items, counts.requests, counts.remaining, counts.late) == (5, 5, 5, 0, 0)

    async def test_a_claim_waits_for_what_comes_later(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, [])
        async with asyncio.timeout(PATIENCE), open_client(engine) as leases:
            claiming = asyncio.create_task(leases.claim())
            await _until(lambda: _workers(engine))
            await engine.frontier.enqueue("run", pages("a.example", 1))
            [lease] = await claiming
            assert lease.task.url == "https://a.example/0"

    async def test_no_more_are_held_than_there_is_room_for(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, pages("a.example", 6), delay=0, concurrency=6)
        faulty = FaultyEngine(engine)
        async with asyncio.timeout(PATIENCE), open_client(faulty, concurrency=2) as leases:
            first, second = await leases.claim()
            waiting = asyncio.create_task(leases.claim())
            await asyncio.sleep(0)
            asked = len(faulty.asked)
            await _ask(first)
            leases.settle(first, Done())
            [third] = await waiting
            assert [ask.want for ask in faulty.asked[asked:] if ask.settlements] == [1]
            assert set(leases.held.values()) == {second, third}
            assert (await _counts(engine)).leased == 2

    async def test_nothing_is_claimed_that_nobody_waits_for(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, pages("a.example", 3), delay=0, concurrency=3)
        async with asyncio.timeout(PATIENCE), open_client(engine, concurrency=3) as leases:
            [lease] = await leases.claim(1)
            leases.give_back(lease)
            await leases.flush()
            assert (await _counts(engine)).leased == 0

    async def test_a_claim_that_is_given_up_loses_nothing(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, [])
        async with asyncio.timeout(PATIENCE), open_client(engine) as leases:
            claiming = asyncio.create_task(leases.claim())
            await _until(lambda: _workers(engine))
            await engine.frontier.enqueue("run", pages("a.example", 1))
            await asyncio.sleep(0)
            claiming.cancel()
            [lease] = await leases.claim()
            assert lease.task.attempts == lease.task.crashes == 0

    async def test_a_lease_ends_once(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, pages("a.example", 2), delay=0, concurrency=2)
        async with (
            asyncio.timeout(PATIENCE),
            open_client(engine, concurrency=2) as leases,
            open_client(engine) as other,
        ):
            first, second = await leases.claim()
            await _ask(first)
            leases.settle(first, Done())
            leases.give_back(second)
            for lease in (first, second):
                with pytest.raises(UsageError, match="settled or given back already"):
                    leases.settle(lease, Done())
                with pytest.raises(UsageError, match="settled or given back already"):
                    leases.give_back(lease)
                with pytest.raises(TooLate):
                    lease.start()
            [third] = await leases.claim()
            with pytest.raises(UsageError, match="of another client"):
                other.give_back(third)

    async def test_an_outcome_of_a_request_needs_one(self, engine: Store, open_client: Opener) -> None:
        """Otherwise the clock of the site would not know of it."""
        await _run(engine, pages("a.example", 2), delay=0)
        async with asyncio.timeout(PATIENCE), open_client(engine, drain=True) as leases:
            [lease] = await leases.claim()
            for outcome in (Done(), Retried(0, Reason(Blame.URL, "HTTP 500"))):
                with pytest.raises(UsageError, match="No request was started"):
                    leases.settle(lease, outcome)
            leases.settle(lease, lease.settlement(Done()))
            await leases.flush()
            counts = await _counts(engine)
            assert (counts.done, counts.requests) == (1, 0)

    async def test_requests_of_a_slot_keep_their_distance(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, pages("a.example", 4), delay=150)
        starts: list[int] = []
        async with asyncio.timeout(PATIENCE), open_client(engine, drain=True, concurrency=4) as leases:
            async for lease in leases:
                async with lease.request():
                    starts.append(lease.now)
                leases.settle(lease, Done())
        assert len(starts) == 4
        assert min(later - sooner for sooner, later in pairwise(starts)) >= 150

    # Giving back, stopping, closing

    async def test_what_is_given_back_waits_again_unharmed(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, pages("a.example", 1), delay=0)
        async with asyncio.timeout(PATIENCE), open_client(engine) as leases, open_client(engine) as other:
            [lease] = await leases.claim()
            leases.give_back(lease)
            [again] = await other.claim()
            assert (again.task.id, again.task.attempts, again.task.crashes) == (lease.task.id, 0, 0)

    async def test_close_gives_back_what_is_held_and_the_second_does_nothing(
        self, engine: Store, open_client: Opener
    ) -> None:
        await _run(engine, pages("a.example", 3), delay=0, concurrency=3)
        faulty = FaultyEngine(engine)
        async with asyncio.timeout(PATIENCE), open_client(faulty, concurrency=3) as leases:
            held = await leases.claim()
            await leases.close()
            assert (len(held), (await _counts(engine)).waiting, len(leases.held)) == (3, 3, 0)
            asked = len(faulty.asked)
            await leases.close()
            assert (await leases.claim(), len(faulty.asked)) == ((), asked)
        counts = await _counts(engine)
        assert (counts.crashes, counts.retries, counts.late, len(faulty.asked)) == (0, 0, 0, asked)

    async def test_an_error_in_the_block_gives_back_too(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, pages("a.example", 2), delay=0, concurrency=2)

        async def fail() -> None:
            async with asyncio.timeout(PATIENCE), open_client(engine, concurrency=2) as leases:
                assert len(await leases.claim()) == 2
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        assert (await _counts(engine)).waiting == 2

    async def test_stopped_it_claims_no_more_and_settles_what_it_holds(
        self, engine: Store, open_client: Opener
    ) -> None:
        await _run(engine, pages("a.example", 2), delay=0)
        async with asyncio.timeout(PATIENCE), open_client(engine) as leases:
            [lease] = await leases.claim()
            waiting = asyncio.create_task(leases.claim())
            await asyncio.sleep(0)
            leases.stop(PATIENCE)
            assert await waiting == ()
            await _ask(lease)
            leases.settle(lease, Done())
        counts = await _counts(engine)
        assert (counts.done, counts.waiting, counts.late) == (1, 1, 0)

    # Leases that live, and that do not

    async def test_a_lease_is_renewed_for_as_long_as_it_is_held(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, pages("a.example", 1), delay=0, lease=4_000, hard_timeout=0)
        faulty = FaultyEngine(engine)
        async with asyncio.timeout(PATIENCE), open_client(faulty) as leases:
            [lease] = await leases.claim()
            await _ask(lease)
            await _until(lambda: _is(lease.now > lease.lease.expires_at + 200))
            assert faulty.renewed >= 2
            await engine.frontier.sweep()
            leases.settle(lease, Done())
            await leases.flush()
        counts = await _counts(engine)
        assert (counts.done, counts.late, counts.crashes) == (1, 0, 0)

    async def test_a_lease_that_is_lost_is_told_and_starts_nothing(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, pages("a.example", 1), delay=0)
        lost: list[HeldLease] = []

        class Watcher(LeaseWatcher):
            def lost(self, held: HeldLease) -> None:
                lost.append(held)

        async with asyncio.timeout(PATIENCE), open_client(engine, watcher=Watcher()) as leases:
            [lease] = await leases.claim()
            await engine.frontier.cancel_run("run")
            await _until(lambda: _is(bool(lost)))
            assert lost == [lease]
            with pytest.raises(TooLate):
                lease.start()
            leases.give_back(lease)
        assert (await _counts(engine)).remaining == 0

    # Stores that fail

    async def test_an_answer_that_is_lost_is_no_grant_lost(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, pages("a.example", 6), delay=0, concurrency=2)
        faulty = FaultyEngine(engine)
        faulty.lose = 1
        async with asyncio.timeout(PATIENCE), open_client(faulty, concurrency=2, drain=True) as leases:
            async for lease in leases:
                await _ask(lease)
                leases.settle(lease, Done())
                faulty.lose = int(lease.task.url.endswith("/3"))
        counts = await _counts(engine)
        assert faulty.lost >= 1
        assert (counts.done, counts.requests, counts.crashes, counts.retries) == (6, 6, 0, 0)

    async def test_a_store_that_is_away_is_waited_for(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, pages("a.example", 2), delay=0)
        faulty = FaultyEngine(engine)
        async with asyncio.timeout(PATIENCE), open_client(faulty, drain=True) as leases:
            [lease] = await leases.claim()
            await _ask(lease)
            faulty.away, tried = True, faulty.tried
            leases.settle(lease, Done(items=(b"{}",)))
            claiming = asyncio.create_task(leases.claim())
            await _until(lambda: _is(faulty.tried > tried + 1))
            faulty.away = False
            [second] = await claiming
            assert second.task.id != lease.task.id
        counts = await _counts(engine)
        assert (counts.done, counts.items, counts.late, counts.waiting) == (1, 1, 0, 1)

    async def test_a_store_that_is_broken_ends_it_with_its_error(self, engine: Store, open_client: Opener) -> None:
        await _run(engine, pages("a.example", 2), delay=0)
        faulty = FaultyEngine(engine)

        async def fail() -> None:
            async with asyncio.timeout(PATIENCE), open_client(faulty) as leases:
                [lease] = await leases.claim()
                faulty.broken = EngineFull("There is no space left.")
                leases.give_back(lease)
                with pytest.raises(EngineFull, match="no space left"):
                    await leases.claim()

        with pytest.raises(EngineFull, match="no space left"):
            await fail()

    # Sudden deaths

    @pytest.mark.parametrize("charge_all", [True, False])
    async def test_a_crash_is_charged_to_what_was_in_hand(
        self, engine: Store, open_client: Opener, store_url: str, charge_all: bool
    ) -> None:
        """All that was handed out, or only what was being handled."""
        await _run(engine, pages("a.example", 3), delay=0, concurrency=3, hard_timeout=0)
        arguments = (sys.executable, "-c", _DIES, store_url, SHOP, str(int(charge_all)))
        process = await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        handled = output.decode().strip()
        assert handled.startswith("https://a.example/")
        async with asyncio.timeout(PATIENCE), open_client(engine, concurrency=3) as leases:
            claimed: list[HeldLease] = []
            while len(claimed) < 3:
                claimed += await leases.claim()
            crashes = {lease.task.url: lease.task.crashes for lease in claimed}
        assert crashes == {url: int(charge_all or url == handled) for url in crashes}


_DIES = """
import asyncio, os, signal, sys
from shoal.delivery.open import open_leases

async def main():
    async with open_leases(sys.argv[1], [sys.argv[2]], concurrency=3, charge_all=sys.argv[3] == "1") as leases:
        claimed = []
        while len(claimed) < 3:
            claimed += await leases.claim()
        with leases.handling(claimed[1]):
            print(claimed[1].task.url, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def _run(engine: Engine, tasks: list[NewTask], **rules: Any) -> None:
    await engine.frontier.create_run(NewRun("run", SHOP, Policy(**rules)))
    await engine.frontier.enqueue("run", tasks)


async def _ask(lease: HeldLease) -> None:
    async with lease.request():
        pass


async def _counts(engine: Engine) -> Counters:
    return (await engine.reader.run("run")).counters


async def _workers(engine: Engine) -> bool:
    return bool(await engine.reader.workers())


async def _is(so: bool) -> bool:
    return so


async def _until(so: Callable[[], Awaitable[bool]]) -> None:
    """Look again and again until it is so; the test's own limit ends it."""
    while not await so():  # noqa: ASYNC110 - the store tells nobody
        await asyncio.sleep(0.01)

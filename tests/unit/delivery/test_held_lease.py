from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from shoal.core.clock import Millis
from shoal.core.politeness import transit_allowance
from shoal.core.task import NO_EXTRA, Lease, Task
from shoal.delivery.held_lease import EXPIRY_MARGIN, PATIENCE, RENEW_EVERY, HeldLease
from shoal.errors import NeedsAnotherLease, TooLate, UsageError
from shoal.testing.jump_clock import NOON, JumpClock
from support.waiting import until

DELAY = 1000
URL = "http://x.example/"


class SleeplessClock(JumpClock):
    """Jumps over whatever is slept by it."""

    async def sleep(self, seconds: float) -> None:
        self.advance(int(seconds * 1000) + 1)


@pytest.fixture
def clock() -> JumpClock:
    return SleeplessClock()


def held(
    clock: JumpClock,
    *,
    delay: Millis = DELAY,
    exclusive: bool = True,
    start_in: Millis = 0,
    window: Millis = 150_000,
    life: Millis = 300_000,
    shift: float | None = None,
    slack: float = 0.0,
    far: bool = False,
) -> HeldLease:
    now = clock.now()
    task = Task(1, "run", "test", URL, "x.example", "bulk", None, 0, 0, 0, 0, NO_EXTRA)
    start = now + start_in
    lease = Lease(task, 7, "direct", now, start, start + window, now + life, delay, exclusive)
    return HeldLease(lease, clock, float(NOON) if shift is None else shift, slack, far=far)


async def ask(lease: HeldLease, takes: Millis = 0) -> float:
    """Make a request that is answered after so long. Answers when it started."""
    lease.start()
    started = lease._clock.elapsed()
    assert isinstance(lease._clock, JumpClock)
    lease._clock.advance(takes)
    lease.end_request(5)
    return started


# The window


async def test_it_waits_for_its_start(clock: JumpClock) -> None:
    lease = held(clock, start_in=20)
    await lease.next_start()
    assert clock.now() >= lease.lease.start_at
    lease.start()
    assert lease.starts == 1


async def test_a_start_is_possible_until_the_very_end_of_the_window(clock: JumpClock) -> None:
    lease = held(clock, window=50)
    clock.advance(50)
    lease.start()
    late = held(clock, window=50)
    clock.advance(51)
    with pytest.raises(TooLate):
        late.start()
    assert (late.starts, late.started_at) == (0, None)


async def test_a_clock_that_is_ahead_by_the_unknown_makes_starts_look_late(clock: JumpClock) -> None:
    """The claim may have taken 40 ms: a start in the last 40 ms of the window is refused, never believed too early."""
    lease = held(clock, window=50, shift=NOON + 40.0)
    clock.advance(11)
    with pytest.raises(TooLate):
        lease.start()


# The pace


async def test_the_pace_is_counted_from_when_the_target_has_seen_the_request(clock: JumpClock) -> None:
    slow, quick = held(clock), held(clock)
    await ask(quick, 5)
    assert quick.started_at == NOON + 5 + 1
    begun = clock.now()
    await ask(slow, 5000)
    assert slow.started_at == begun + transit_allowance(DELAY) + 1
    assert (quick.received, quick.starts) == (5, 1)


async def test_by_a_far_exit_the_pace_is_counted_from_the_answer(clock: JumpClock) -> None:
    """The next request may be quicker than this one was: only after the answer is it sure to come a delay later."""
    far, broken = held(clock, far=True), held(clock, far=True)
    await ask(far, 5_000)
    assert far.started_at == NOON + 5_000 + 1
    broken.start()
    clock.advance(3_000)
    broken.end_request(None)
    assert broken.started_at == NOON + 8_000 + 1


async def test_one_more_request_of_a_lease_waits_for_the_delay(clock: JumpClock) -> None:
    lease = held(clock)
    started = []
    for _ in range(5):
        await lease.next_start()
        started.append(await ask(lease, 100))
    gaps = [later - sooner for sooner, later in pairwise(started)]
    assert min(gaps) >= DELAY
    assert max(gaps) <= DELAY + transit_allowance(DELAY) + 3
    assert lease.starts == 5


async def test_without_a_delay_nothing_waits(clock: JumpClock) -> None:
    lease = held(clock, delay=0, exclusive=False)
    for _ in range(3):
        await lease.next_start()
        await ask(lease)
    assert clock.now() == NOON


async def test_a_lease_among_others_is_good_for_one_request(clock: JumpClock) -> None:
    lease = held(clock, exclusive=False)
    await lease.next_start()
    lease.start()
    with pytest.raises(NeedsAnotherLease):
        await lease.next_start()


async def test_a_delay_that_was_raised_holds_for_the_next_start(clock: JumpClock) -> None:
    lease = held(clock, delay=0)
    first = await ask(lease)
    lease.delay = 3000
    with pytest.raises(TooLate):
        lease.start()
    await lease.next_start()
    assert await ask(lease) - first >= 3000


async def test_nobody_holds_a_lease_for_hours_to_make_one_more_request(clock: JumpClock) -> None:
    lease = held(clock, delay=PATIENCE + 1)
    await lease.next_start()
    lease.start()
    with pytest.raises(NeedsAnotherLease):
        await lease.next_start()


async def test_a_repeated_request_keeps_the_delay(clock: JumpClock) -> None:
    """A fetcher wants to repeat at once what broke off on a kept connection."""
    lease, free = held(clock), held(clock, delay=0)
    lease.start()
    with pytest.raises(TooLate):
        lease.start()
    free.start()
    free.start()
    assert (lease.starts, free.starts) == (1, 2)
    assert [start.slack for start in free.end_request(1)] == [0, 0]


async def test_a_lease_among_others_repeats_nothing_however_long_after(clock: JumpClock) -> None:
    """The others of its slot have their own starts, which it does not know of."""
    lease = held(clock, exclusive=False)
    lease.start()
    clock.advance(60_000)
    with pytest.raises(TooLate):
        lease.start()


async def test_who_does_not_wait_for_the_moment_is_told(clock: JumpClock) -> None:
    lease = held(clock, start_in=20)
    with pytest.raises(UsageError, match="next_start"):
        lease.start()
    assert (lease.starts, lease.started_at) == (0, None)


async def test_nothing_starts_when_it_is_over(clock: JumpClock) -> None:
    lease = held(clock)
    lease.is_over = True
    assert not lease.may_start
    with pytest.raises(TooLate):
        lease.start()


async def test_only_the_first_start_is_in_doubt(clock: JumpClock) -> None:
    lease = held(clock, delay=0, shift=NOON + 40.0, slack=39.5)
    clock.advance(40)
    lease.start()
    lease.start()
    clock.advance(7)
    assert [(start.slack, start.took) for start in lease.end_request(None)] == [(40, 7), (0, 7)]
    lease.start()
    assert [start.slack for start in lease.end_request(None)] == [0]


async def test_a_request_as_a_block_waits_starts_and_ends(clock: JumpClock) -> None:
    lease = held(clock, start_in=20)
    async with lease.request():
        assert clock.now() >= lease.lease.start_at
        clock.advance(5)
    assert (lease.starts, lease.started_at) == (1, clock.now() + 1)
    with pytest.raises(ConnectionError):
        async with lease.request():
            raise ConnectionError
    assert (lease.starts, lease.started_at) == (2, clock.now() + transit_allowance(DELAY) + 1)


# Renewal


async def test_no_further_start_close_to_the_end_of_the_lease(clock: JumpClock) -> None:
    lease = held(clock, delay=0, life=10_000)
    lease.start()
    clock.advance(10_000 - EXPIRY_MARGIN)
    lease.start()
    clock.advance(1)
    with pytest.raises(TooLate):
        lease.start()


async def test_a_renewed_lease_goes_on(clock: JumpClock) -> None:
    lease = held(clock, delay=0, life=10_000)
    lease.start()
    clock.advance(5000)
    lease.renewed(clock.elapsed())
    assert lease.expires_at == clock.now() + 10_000
    clock.advance(8000)
    lease.start()


async def test_when_a_lease_is_to_be_renewed(clock: JumpClock) -> None:
    assert held(clock, life=300_000).renew_at == clock.elapsed() + RENEW_EVERY
    short = held(clock, life=3000)
    assert short.renew_at == clock.elapsed() + 1000
    clock.advance(1500)
    short.renewed(clock.elapsed())
    assert short.renew_at == clock.elapsed() + 1000


async def test_a_timer_that_fires_early_is_not_believed() -> None:
    slept = 0

    class Hasty(JumpClock):
        async def sleep(self, seconds: float) -> None:
            nonlocal slept
            slept += 1
            self.advance(max(1, int(seconds * 900)))

    clock = Hasty()
    lease = held(clock, start_in=1000)
    await lease.next_start()
    assert clock.now() >= lease.lease.start_at
    assert slept > 1


async def test_cancelled_while_it_waits() -> None:
    clock = JumpClock()
    lease = held(clock, start_in=60_000)
    waiting = asyncio.create_task(lease.next_start())
    await until(lambda: clock.sleeping, "it waits")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert lease.started_at is None


async def test_where_the_time_of_the_store_is_uncertain_no_request_starts_early(clock: JumpClock) -> None:
    """The shift is too high by up to the slack: the store may still be before `start_at` when we are past it."""
    slack = 40.0
    lease = held(clock, start_in=20, shift=NOON + slack, slack=slack)
    await lease.next_start()
    assert clock.now() >= lease.lease.start_at


def test_where_the_time_of_the_store_is_uncertain_a_lease_is_not_believed_to_live_too_long(clock: JumpClock) -> None:
    certain, uncertain = held(clock), held(clock, shift=NOON + 40.0, slack=40.0)
    for lease in (certain, uncertain):
        lease.renewed(clock.elapsed())
    assert uncertain.expires_at == certain.expires_at


async def test_without_a_delay_the_target_has_seen_a_request_by_its_answer(clock: JumpClock) -> None:
    """A pace may be asked for later, by robots.txt: it counts from when the target surely saw the request."""
    lease = held(clock, delay=0)
    began = clock.now()
    await ask(lease, 40)
    assert lease.started_at is not None
    assert lease.started_at >= began + 40

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from shoal.clock import Millis
from shoal.fetch.protocol import Fetch, FetchError, Gate, Response, TooLate
from shoal.outcome import Blame
from shoal.politeness import transit_allowance
from shoal.task import NO_EXTRA, Lease, Task
from shoal.testing.jump_clock import NOON, JumpClock
from shoal.work import held as held_module
from shoal.work.held import EXPIRY_MARGIN, PATIENCE, RENEW_EVERY, HeldLease, NeedsAnotherLease

DELAY = 1000
URL = "http://x.example/"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> JumpClock:
    """A clock that jumps over whatever a held lease sleeps."""
    clock = JumpClock()

    async def jump(seconds: float) -> None:
        clock.advance(int(seconds * 1000) + 1)

    class Sleepless:
        sleep = staticmethod(jump)

    monkeypatch.setattr(held_module, "asyncio", Sleepless)
    return clock


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


@dataclass
class Wire:
    """A network that takes its time, or breaks off so many times before it answers."""

    clock: JumpClock
    takes: Millis = 0
    breaks: int = 0
    gates: list[float] = field(default_factory=list)

    async def fetch(self, fetch: Fetch, gate: Gate) -> Response:
        for _ in range(self.breaks + 1):
            gate()
            self.gates.append(self.clock.elapsed())
        self.clock.advance(self.takes)
        return Response(fetch.url, 200, CIMultiDictProxy(CIMultiDict()), b"x", 5)

    async def close(self) -> None:
        """Nothing to close."""


# The window


async def test_it_waits_for_its_start(clock: JumpClock) -> None:
    lease = held(clock, start_in=20)
    await lease.next_start()
    assert clock.now() >= lease.lease.start_at
    lease()
    assert lease.starts == 1


async def test_a_start_is_possible_until_the_very_end_of_the_window(clock: JumpClock) -> None:
    lease = held(clock, window=50)
    clock.advance(50)
    lease()
    late = held(clock, window=50)
    clock.advance(51)
    with pytest.raises(TooLate):
        late()
    assert (late.starts, late.started_at) == (0, None)


async def test_a_clock_that_is_ahead_by_the_unknown_makes_starts_look_late(clock: JumpClock) -> None:
    """The claim may have taken 40 ms: a start in the last 40 ms of the window is refused, never believed too early."""
    lease = held(clock, window=50, shift=NOON + 40.0)
    clock.advance(11)
    with pytest.raises(TooLate):
        lease()


# The pace


async def test_the_pace_is_counted_from_when_the_target_has_seen_the_request(clock: JumpClock) -> None:
    slow, quick = held(clock), held(clock)
    await quick.fetch(Wire(clock, takes=5), Fetch(URL))
    assert quick.started_at == NOON + 5 + 1
    begun = clock.now()
    await slow.fetch(Wire(clock, takes=5000), Fetch(URL))
    assert slow.started_at == begun + transit_allowance(DELAY) + 1
    assert (quick.received, quick.starts) == (5, 1)


async def test_by_a_far_exit_the_pace_is_counted_from_the_answer(clock: JumpClock) -> None:
    """The next request may be quicker than this one was: only after the answer is it sure to come a delay later."""
    far, broken = held(clock, far=True), held(clock, far=True)
    await far.fetch(Wire(clock, takes=5_000), Fetch(URL))
    assert far.started_at == NOON + 5_000 + 1

    class Silent(Wire):
        async def fetch(self, fetch: Fetch, gate: Gate) -> Response:
            await super().fetch(fetch, gate)
            raise FetchError("no data", Blame.EXIT)

    with pytest.raises(FetchError):
        await broken.fetch(Silent(clock, takes=3_000), Fetch(URL))
    assert broken.started_at == NOON + 8_000 + 1


async def test_one_more_request_of_a_lease_waits_for_the_delay(clock: JumpClock) -> None:
    lease, wire = held(clock), Wire(clock, takes=100)
    for _ in range(5):
        await lease.next_start()
        await lease.fetch(wire, Fetch(URL))
    gaps = [later - sooner for sooner, later in zip(wire.gates, wire.gates[1:], strict=False)]
    assert min(gaps) >= DELAY
    assert max(gaps) <= DELAY + transit_allowance(DELAY) + 3
    assert lease.starts == 5


async def test_without_a_delay_nothing_waits(clock: JumpClock) -> None:
    lease = held(clock, delay=0, exclusive=False)
    for _ in range(3):
        await lease.next_start()
        await lease.fetch(Wire(clock), Fetch(URL))
    assert clock.now() == NOON


async def test_a_lease_among_others_is_good_for_one_request(clock: JumpClock) -> None:
    lease = held(clock, exclusive=False)
    await lease.next_start()
    lease()
    with pytest.raises(NeedsAnotherLease):
        await lease.next_start()


async def test_a_delay_that_was_raised_holds_for_the_next_start(clock: JumpClock) -> None:
    lease, wire = held(clock, delay=0), Wire(clock)
    await lease.fetch(wire, Fetch(URL))
    lease.delay = 3000
    with pytest.raises(TooLate):
        lease()
    await lease.next_start()
    await lease.fetch(wire, Fetch(URL))
    assert wire.gates[1] - wire.gates[0] >= 3000


async def test_nobody_holds_a_lease_for_hours_to_make_one_more_request(clock: JumpClock) -> None:
    lease = held(clock, delay=PATIENCE + 1)
    await lease.next_start()
    lease()
    with pytest.raises(NeedsAnotherLease):
        await lease.next_start()


async def test_a_repeated_request_keeps_the_delay_or_fails(clock: JumpClock) -> None:
    """The fetcher wants to repeat at once what broke off on a kept connection."""
    lease = held(clock)
    with pytest.raises(FetchError, match="connection closed before an answer"):
        await lease.fetch(Wire(clock, breaks=1), Fetch(URL))
    assert lease.starts == 1
    free = held(clock, delay=0)
    await free.fetch(Wire(clock, breaks=1), Fetch(URL))
    assert free.starts == 2


async def test_a_request_that_was_never_made_is_too_late_and_no_failure(clock: JumpClock) -> None:
    lease = held(clock, window=10)
    clock.advance(11)
    with pytest.raises(TooLate):
        await lease.fetch(Wire(clock), Fetch(URL))


# Renewal


async def test_no_further_start_close_to_the_end_of_the_lease(clock: JumpClock) -> None:
    lease = held(clock, delay=0, life=10_000)
    lease()
    clock.advance(10_000 - EXPIRY_MARGIN)
    lease()
    clock.advance(1)
    with pytest.raises(TooLate):
        lease()


async def test_a_renewed_lease_goes_on(clock: JumpClock) -> None:
    lease = held(clock, delay=0, life=10_000)
    lease()
    clock.advance(5000)
    lease.renewed(clock.elapsed())
    assert lease.expires_at == clock.now() + 10_000
    clock.advance(8000)
    lease()


async def test_when_a_lease_is_to_be_renewed(clock: JumpClock) -> None:
    assert held(clock, life=300_000).renew_at == clock.elapsed() + RENEW_EVERY
    short = held(clock, life=3000)
    assert short.renew_at == clock.elapsed() + 1000
    clock.advance(1500)
    short.renewed(clock.elapsed())
    assert short.renew_at == clock.elapsed() + 1000


async def test_a_timer_that_fires_early_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = JumpClock()
    slept = 0

    async def early(seconds: float) -> None:
        nonlocal slept
        slept += 1
        clock.advance(max(1, int(seconds * 900)))

    class Hasty:
        sleep = staticmethod(early)

    monkeypatch.setattr(held_module, "asyncio", Hasty)
    lease = held(clock, start_in=1000)
    await lease.next_start()
    assert clock.now() >= lease.lease.start_at
    assert slept > 1


async def test_cancelled_while_it_waits(clock: JumpClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_module, "asyncio", asyncio)
    lease = held(clock, start_in=60_000)
    waiting = asyncio.create_task(lease.next_start())
    await asyncio.sleep(0)
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
    await lease.fetch(Wire(clock, takes=40), Fetch(URL))
    assert lease.started_at is not None
    assert lease.started_at >= began + 40

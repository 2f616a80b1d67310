"""Retrying with a store that is away: who tries, when, how often, and what is said about it."""

from __future__ import annotations

import asyncio
import random
import re

import pytest
from structlog.testing import capture_logs

from shoal.core import log_events
from shoal.errors import EngineBroken, EngineFull, EngineRefused, EngineUnavailable, UsageError
from shoal.frontier.retrying import FIRST_PAUSE, LONGEST_PAUSE, Retrying
from shoal.testing.jump_clock import JumpClock


class Store:
    """Fails so many times, then answers."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.asked = 0
        self.at_once = self.most_at_once = 0

    async def answer(self) -> str:
        self.asked += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if self.asked <= self.failures:
            raise EngineUnavailable(f"Nobody is at home ({self.asked}).")
        return "here"


class Hurried(JumpClock):
    """A clock by which nobody sleeps. `pauses`: how long each would have been."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> Hurried:
    return Hurried()


@pytest.fixture
def pauses(clock: Hurried) -> list[float]:
    return clock.pauses


async def test_it_tries_until_there_is_an_answer_and_says_so_each_time(clock: Hurried, pauses: list[float]) -> None:
    store = Store(4)
    patience = Retrying(clock, random.Random(1))
    with capture_logs() as logs:
        assert await patience.call("exchange", store.answer) == "here"
    assert [line["event"] for line in logs] == [log_events.STORE_UNANSWERED] * 4 + [log_events.STORE_RECOVERED]
    assert [(line["doing"], line["attempt"]) for line in logs[:4]] == [("exchange", number) for number in (1, 2, 3, 4)]
    assert [line["reason"] for line in logs[:4]] == [f"Nobody is at home ({number})." for number in (1, 2, 3, 4)]
    assert [line["next_try"] for line in logs[:4]] == [f"in {pause:.2f} s" for pause in pauses]
    assert logs[4]["attempts"] == 5
    assert not patience.is_away


async def test_pauses_grow_with_jitter_and_have_an_end(clock: Hurried, pauses: list[float]) -> None:
    await Retrying(clock, chance=random.Random(2)).call("sweep", Store(1200).answer)
    expected = [min(LONGEST_PAUSE, FIRST_PAUSE * 2**number) for number in range(12)] + [LONGEST_PAUSE] * 1188
    assert len(pauses) == 1200
    assert all(full / 2 <= pause <= full for pause, full in zip(pauses, expected, strict=True))
    assert len(set(pauses[-100:])) > 90


async def test_one_tries_for_all_and_then_all_are_served(clock: Hurried, pauses: list[float]) -> None:
    store = Store(25)
    patience = Retrying(clock)
    with capture_logs() as logs:
        answers = await asyncio.gather(*(patience.call(f"verb {number}", store.answer) for number in range(20)))
    assert answers == ["here"] * 20
    tries = [line for line in logs if "attempt" in line]
    assert len(pauses) == len(tries) == 6, "the first twenty questions were on their way already"
    assert [line["attempt"] for line in tries] == [1, 2, 3, 4, 5, 6]
    assert store.asked == 25 + 20


async def test_if_the_one_that_tries_gives_up_another_goes_on(clock: Hurried, pauses: list[float]) -> None:
    store = Store(10)
    patience = Retrying(clock)
    first = asyncio.create_task(patience.call("first", store.answer))
    while not pauses:  # noqa: ASYNC110 - it is at its second try
        await asyncio.sleep(0)
    second = asyncio.create_task(patience.call("second", store.answer))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == "here"


@pytest.mark.parametrize("error", [EngineFull, EngineBroken, EngineRefused, UsageError])
async def test_what_will_not_pass_is_not_waited_for(error: type[Exception]) -> None:
    async def refuse() -> None:
        raise error("No.")

    with pytest.raises(error, match=re.escape("No.")):
        await Retrying().call("enqueue", refuse)


async def test_a_store_that_came_back_is_steady_after_a_while(clock: Hurried) -> None:
    patience = Retrying(clock)
    assert patience.is_steady
    for away, wait in ((700, 700), (60_000, 5_000)):
        store = Store(1)

        async def answer(store: Store = store, away: int = away) -> str:
            if store.asked:
                clock.advance(away)
            return await store.answer()

        await patience.call("exchange", answer)
        clock.advance(wait)
        assert not patience.is_steady
        clock.advance(1)
        assert patience.is_steady

"""Turns for large reads: few at once, fair between clients, and none lost."""

from __future__ import annotations

import asyncio

import pytest

from shoal.gateway.http.answer import Problem
from shoal.gateway.limits.read_turns import ReadTurns


class Reading:
    """Reads that are under way until they are told to end."""

    def __init__(self, turns: ReadTurns) -> None:
        self.turns = turns
        self.under_way: list[str] = []
        self.end = asyncio.Event()

    async def read(self, client: str) -> None:
        async with self.turns.turn(client):
            self.under_way.append(client)
            await self.end.wait()

    async def begin(self, *clients: str) -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(self.read(client)) for client in clients]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return tasks


async def test_who_asks_for_much_waits_for_itself() -> None:
    reading = Reading(ReadTurns(at_once=2))
    tasks = await reading.begin(*["greedy"] * 10, "modest")
    assert reading.under_way == ["greedy"] * 2
    reading.end.set()
    await asyncio.gather(*tasks)
    assert reading.under_way.index("modest") <= 4, "after those that were under way, and one turn of the other"
    assert len(reading.under_way) == 11


async def test_who_leaves_gives_the_turn_on() -> None:
    reading = Reading(ReadTurns(at_once=1))
    first, second, third = await reading.begin("a", "b", "c")
    second.cancel()
    first.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    reading.end.set()
    await third
    assert reading.under_way == ["a", "c"]
    [again] = await reading.begin("d")
    await again


async def test_one_whose_turn_comes_as_it_leaves_gives_it_on() -> None:
    reading = Reading(ReadTurns(at_once=1))
    first, second, third = await reading.begin("a", "b", "c")
    reading.end.set()
    await first
    second.cancel()  # its turn has come, and it has not noticed yet
    await asyncio.wait([second])
    await asyncio.wait_for(third, 60)
    assert reading.under_way[-1] == "c"


async def test_too_many_are_told_to_come_again_and_the_greediest_first() -> None:
    reading = Reading(ReadTurns(at_once=1, most_waiting=3))
    tasks = await reading.begin(*["greedy"] * 4, "modest")
    reading.end.set()
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(end) for end in ends] == [type(None)] * 3 + [Problem, type(None)]
    assert reading.under_way.count("modest") == 1


@pytest.mark.parametrize("at_once", [1, 3])
async def test_a_read_that_fails_gives_its_turn_on(at_once: int) -> None:
    turns = ReadTurns(at_once)
    for _ in range(5):
        with pytest.raises(ValueError, match="broken"):
            async with turns.turn("a"):
                raise ValueError("broken")
    async with asyncio.timeout(60), turns.turn("a"):
        pass

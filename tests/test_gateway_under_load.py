"""What keeps a gateway upright when more comes than it can bear."""

from __future__ import annotations

import asyncio
import resource
import time
from typing import Any

import pytest

from shoal.gateway.answer import unavailable
from shoal.gateway.pushback import Pushback
from shoal.gateway.reach import within
from shoal.gateway.room import Room, room_for_clients


@pytest.mark.parametrize(("connected", "status"), [(10, 204), (11, 503)])
async def test_more_clients_than_there_is_room_for_are_told_and_hung_up_on(connected: int, status: int) -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await Room(app, lambda: connected, 10)({}, None, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == status
    if status == 503:
        assert {(b"connection", b"close"), (b"retry-after", b"5")} <= set(sent[0]["headers"])


def test_a_process_keeps_descriptors_for_itself() -> None:
    room = room_for_clients()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == hard or soft >= 1_000_000, "as many as the system lets it have"
    assert room <= soft - 200


def test_those_who_are_turned_away_come_back_one_after_the_other() -> None:
    now = [100.0]
    pushback = Pushback(500, lambda: now[0])
    told = [pushback.answer(unavailable("overloaded", "Too much.", 2)) for _ in range(3000)]
    seconds = [int(dict(answer.headers)[b"retry-after"]) for answer in told]
    assert (seconds[0], seconds[-1]) == (2, 6)
    assert max(seconds.count(second) for second in set(seconds) - {2}) <= 500
    now[0] += 60
    assert dict(pushback.answer(unavailable("overloaded", "Too much.")).headers)[b"retry-after"] == b"1"


async def test_a_busy_process_does_not_take_its_own_slowness_for_that_of_the_store() -> None:
    async def answer_in_three_turns() -> str:
        for _ in range(3):
            await asyncio.sleep(0)
            time.sleep(0.05)  # noqa: ASYNC251 - this process has much to do
        return "here"

    assert await within(0.1, answer_in_three_turns()) == "here"
    with pytest.raises(TimeoutError):
        await within(0.05, asyncio.Event().wait())

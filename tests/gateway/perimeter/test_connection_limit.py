"""More clients than a process can hold."""

from __future__ import annotations

import resource
from typing import Any

import pytest

from shoal.gateway.perimeter.connection_limit import ConnectionLimit, most_connections


@pytest.mark.parametrize(("connected", "status"), [(10, 204), (11, 503)])
async def test_more_clients_than_there_is_room_for_are_told_and_hung_up_on(connected: int, status: int) -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 204, "headers": []})

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await ConnectionLimit(app, lambda: connected, 10)({}, None, send)  # type: ignore[arg-type]
    assert sent[0]["status"] == status
    if status == 503:
        assert {(b"connection", b"close"), (b"retry-after", b"5")} <= set(sent[0]["headers"])


def test_a_process_keeps_descriptors_for_itself() -> None:
    room = most_connections()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert soft == hard or soft >= 1_000_000, "as many as the system lets it have"
    assert room <= soft - 200

"""Results that are too large for one answer, and clients that ask for them and do not read."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from msgspec.structs import replace

from shoal.core.clock import millis
from shoal.core.secrets.box import NoKeys
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.gateway import server
from shoal.gateway.http.streams import StreamCut, events, lines
from shoal.gateway.limits.keys import ANYBODY, Scope, new_key, store_key
from shoal.gateway.options import GatewayOptions
from shoal.gateway.perimeter import unread_answers
from shoal.gateway.service import GatewayService
from shoal.testing.jump_clock import JumpClock
from support.gateway_parts import shop_scraper, submit
from support.gateway_process import served
from support.listening_gateway import Listening, listening, settle_next
from support.raw_client import memory_of, raw_client
from support.waiting import until
from support.working import opened

MEGABYTE = 1024 * 1024


async def a_large_job(engine: SqliteEngine, batches: int) -> str:
    """A job that has ended, with 100 kB of items from each of so many pages."""
    service = GatewayService(engine, [shop_scraper()], GatewayOptions())
    async with service.running():
        body = json.dumps([f"https://shop{n}.example/" for n in range(batches)]).encode()
        accepted = await service.submit(ANYBODY, "shop", None, json.loads(body), None, body)
    for number in range(batches):
        await settle_next(engine, [json.dumps({"n": number, "text": "x" * 100_000}).encode()])
    return accepted.submitted.job_id


async def all_items(gateway: Listening, job_id: str) -> tuple[list[int], list[int]]:
    """Every item by the cursor, and how large the answers were."""
    numbers: list[int] = []
    sizes: list[int] = []
    following: int | None = 0
    while following is not None:
        _, body = await gateway.get(f"/jobs/{job_id}/items?cursor={following}&limit=10000")
        sizes.append(len(body))
        document = json.loads(body)
        numbers += [each["item"]["n"] for each in document["items"]]
        following = document["next"]
    return numbers, sizes


async def test_results_come_in_answers_of_bounded_size(engine: SqliteEngine) -> None:
    job_id = await a_large_job(engine, 25)
    async with listening(engine, GatewayOptions(max_answer=1_000_000)) as gateway:
        _, body = await gateway.get(f"/results/{job_id}")
        document = json.loads(body)
        assert (document["status"], document["results"]) == ("complete", None)
        assert document["results_at"] == f"/jobs/{job_id}/items"
        numbers, sizes = await all_items(gateway, job_id)
        assert sorted(numbers) == list(range(25))
        assert len(sizes) > 2
        assert max(sizes) < 2_000_000, sizes


async def test_small_ones_come_at_once(engine: SqliteEngine) -> None:
    job_id = await a_large_job(engine, 3)
    async with listening(engine) as gateway:
        _, body = await gateway.get(f"/results/{job_id}")
        assert sorted(each["n"] for each in json.loads(body)["results"]) == [0, 1, 2]


async def test_who_does_not_read_is_hung_up_on(engine: SqliteEngine) -> None:
    job_id = await a_large_job(engine, 8)
    clock = JumpClock()
    async with listening(engine, GatewayOptions(max_answer=100 * MEGABYTE), clock) as gateway:
        await gateway.get("/health/live")
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.setblocking(False)
        await asyncio.get_running_loop().sock_connect(line, ("127.0.0.1", gateway.port))
        reader, writer = await asyncio.open_connection(sock=line, limit=1024)
        for _ in range(8):  # more than the system keeps for us
            writer.write(f"GET /jobs/{job_id}/items HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())

        def hung_up() -> bool:
            clock.advance(millis(server.LOOK_FOR_THE_SLOW))
            return clock.elapsed() > millis(3 * unread_answers.TAKE_WITHIN)

        await until(hung_up, "enough time has passed")
        received = 0
        try:
            while piece := await reader.read(65536):
                received += len(piece)
        except ConnectionError:
            received = -1
        assert received < 8 * 8 * 100_000, "it was cut off"
        writer.close()


async def test_a_stream_that_may_not_wait_ends(engine: SqliteEngine) -> None:
    """It did not: it asked again at once, for ever, and nothing else came to its turn."""
    service = GatewayService(engine, [shop_scraper()], GatewayOptions(max_waiting=0))
    async with service.running():
        status = await service.see(ANYBODY, await submit(service, "w"))
        told = [each async for each in events(service, ANYBODY, status, None)]
    assert [each.split(b"\n")[0] for each in told] == [b"event: status", b"event: problem"]
    assert b"too-many-waiting" in told[1]


async def test_a_stream_of_items_is_cut_when_its_key_is_revoked(engine: SqliteEngine) -> None:
    job_id = await a_large_job(engine, 20)
    service = GatewayService(engine, [shop_scraper()], GatewayOptions(max_answer=100_000))
    async with service.running():
        _, key = new_key("ada", (Scope.READ,), None, None, service.clock.now(), box=NoKeys())
        await store_key(engine.registry, key)
        await service.keys.load()
        rest = lines(service, key, job_id, 0)
        assert await anext(rest)
        await store_key(engine.registry, replace(key, revoked_at=service.clock.now()))
        await service.keys.load()
        with pytest.raises(StreamCut):
            await anext(rest)


async def test_nor_does_it_begin(engine: SqliteEngine) -> None:
    async with listening(engine, GatewayOptions(max_waiting=0)) as gateway:
        service = GatewayService(engine, [shop_scraper()], GatewayOptions())
        async with service.running():
            job_id = await submit(service, "w")
        head, _ = await gateway.get(f"/jobs/{job_id}/events")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"retry-after" in head


async def test_many_who_do_not_read_cost_no_memory(shop: str, tmp_path: Path) -> None:
    """They did: 80 of them, 832 MB."""
    with served(tmp_path, shop) as gateway:
        job_id = await asyncio.to_thread(
            gateway.submit, "/jobs", {"scraper": "plain", "urls": [f"http://127.0.1.{n}:9/" for n in range(100)]}
        )
        async with opened(tmp_path) as engine:
            for _ in range(100):
                await settle_next(engine, [b'{"text":"%b"}' % (b"x" * 100_000)], "plain")
        before = memory_of(gateway)
        with ExitStack() as stack:
            for number in range(80):
                client = stack.enter_context(raw_client(gateway, receive_buffer=4096))
                asked = f"/results/{job_id}" if number % 2 else f"/jobs/{job_id}/items?limit=10000"
                client.sendall(f"GET {asked} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 4)
                assert (await asyncio.to_thread(gateway.ask, "/health")).status == 200
            assert (await asyncio.to_thread(gateway.ask, f"/jobs/{job_id}/items?limit=1")).status == 200
            grown = memory_of(gateway) - before
        print(f"80 clients that do not read: +{grown} MB")
        assert grown < 200

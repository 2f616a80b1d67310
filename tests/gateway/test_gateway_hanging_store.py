"""A store that hangs without a word: everybody is told so by the gateway's own patience, which is less than a second.

Nothing else would end the waiting here: what the engines themselves would wait for is an hour.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from servers.postgres import PostgresServer, need_programs
from servers.proxy import running_proxy
from servers.redis import RedisServer, running_redis
from shoal import Page, Scraper
from shoal.frontier.contract.timeouts import StoreTimeouts
from shoal.frontier.open import open_engine
from shoal.gateway.app import application
from shoal.gateway.options import GatewayOptions
from shoal.gateway.service import GatewayService
from support.waiting import until

HOURS = StoreTimeouts(connect=3600, call=3600)


class Word(BaseModel):
    word: str


def shop() -> Scraper:
    scraper = Scraper("shop", input=Word, delay=0)
    scraper.start(lambda word: [f"http://shop.example/{word.word}"])

    @scraper.page
    def read(page: Page) -> Any:
        yield {}

    return scraper


@contextmanager
def server_of(kind: str) -> Iterator[PostgresServer | RedisServer]:
    if kind == "redis":
        with running_redis() as running:
            yield running
        return
    server = PostgresServer(need_programs())
    try:
        server.create()
        yield server
    finally:
        server.destroy()


class Store:
    """A store that can be made to hang, and to go on."""

    def __init__(self, url: str, hang: Callable[[], object], go_on: Callable[[], object]) -> None:
        self.url = url
        self.hang = hang
        self.go_on = go_on


@pytest.fixture(params=["sqlite locked", "postgresql stalled", "postgresql stopped", "redis stalled", "redis stopped"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """The file is locked, the network swallows everything, or the server stands still."""
    kind, how = request.param.split()
    with ExitStack() as stack:
        if kind == "sqlite":
            other = stack.enter_context(closing(sqlite3.connect(tmp_path / "shoal.db", isolation_level=None)))
            url = f"sqlite:///{tmp_path}/shoal.db"
            yield Store(url, lambda: other.execute("BEGIN IMMEDIATE"), lambda: other.execute("ROLLBACK"))
            return
        server = stack.enter_context(server_of(kind))
        url = server.url if isinstance(server, RedisServer) else server.url()
        if how == "stopped":
            yield Store(url, server.pause, server.resume)
        else:
            proxy = stack.enter_context(running_proxy(server.port))
            yield Store(url.replace(f":{server.port}/", f":{proxy.port}/"), proxy.stall, proxy.cut)


async def ask(app: Any, method: str, path: str, body: object = None, **headers: str) -> tuple[int, dict[str, str], Any]:
    """One request, straight to the application."""
    path, _, query = path.partition("?")
    sent: list[dict[str, Any]] = []
    given = [(b"host", b"localhost")]
    given += [(name.lower().replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
        "headers": given, "http_version": "1.1", "scheme": "http", "root_path": "", "server": None, "client": None,
    }  # fmt: skip
    arrived = asyncio.Queue[dict[str, Any]]()
    arrived.put_nowait({"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()})

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, arrived.get, send)
    told = {name.decode().lower(): value.decode() for name, value in sent[0]["headers"]}
    raw = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], told, json.loads(raw) if raw else None


def test_the_patience_of_a_gateway_is_less_than_a_second() -> None:
    assert GatewayOptions().store_patience < 1


async def test_everybody_hears_of_it_by_the_patience_of_the_gateway(store: Store) -> None:
    async with AsyncExitStack() as stack:
        engine = await open_engine(store.url, timeouts=HOURS)
        stack.push_async_callback(engine.close)
        service = GatewayService(engine, [shop()], GatewayOptions())
        await stack.enter_async_context(service.running())
        app = application(service)
        status, _, accepted = await ask(app, "POST", "/shop", {"word": "milk"})
        assert status == 202
        job = accepted["job_id"]
        writes = [("POST", "/shop", {"word": "eggs"}), ("POST", "/jobs", {"scraper": "shop", "input": {"word": "x"}})]
        cancel = ("DELETE", f"/jobs/{job}", None)
        looks = [("GET", path, None) for path in (f"/results/{job}", f"/jobs/{job}", f"/jobs/{job}/items")]
        file = store.url.startswith("sqlite")
        store.hang()
        try:
            for _ in range(2):
                wanted = [*writes, cancel, *([] if file else looks)]
                for answer in await asyncio.gather(*(ask(app, *each) for each in wanted)):
                    assert answer[0] == 503, answer
                    assert int(answer[1]["retry-after"]) >= 1
            if not file:
                unknown = await ask(app, "GET", f"/results/{job}", Authorization="Bearer unknown")
                assert unknown[0] == 503
                health = await ask(app, "GET", "/health")
                assert (health[0], health[2]["parts"]["store"]["status"]) == (503, "unavailable")
            assert (await ask(app, "GET", "/health/live"))[0] == 204
        finally:
            store.go_on()

        async def taken() -> bool:
            return (await ask(app, *writes[0]))[0] == 202

        await until(taken, "the store is back")
        assert (await ask(app, "GET", "/health"))[0] == 200
        assert (await ask(app, "GET", f"/results/{job}"))[0] == 200

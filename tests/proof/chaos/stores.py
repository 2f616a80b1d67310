"""The stores that are hurt: each a private server with a proxy before it, or a file."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

from proof.chaos.plan import Kind
from servers.postgres import PostgresServer, need_programs
from servers.proxy import Proxy, running_proxy
from servers.redis import RedisServer, running_redis
from shoal.testing.history import Rest

CONNECTIONS = 4
"""Most connections of one worker to its store."""


COUNT_KEYS = """
local n = 0
for _, key in ipairs(redis.call('KEYS', '*')) do
    if not key:find('}:s:', 1, true) then n = n + 1 end
end
return n
"""
"""Keys of Redis, without those that hold what a run has seen."""


class Store(Protocol):
    """`url`: as the workers reach it. `direct`: without a proxy, for whoever looks on."""

    url: str
    direct: str

    def strike(self, kind: Kind, seconds: float) -> None:
        """Hurt it. Returns when it is as before."""
        ...

    def is_locked(self) -> bool:
        """Whether somebody keeps all others from writing."""
        ...

    def rests(self) -> list[Rest]:
        """What is left at rest, with nobody connected."""
        ...


class SqliteStore:
    """A file: nothing is done to it but what is done to its workers."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.url = self.direct = f"sqlite:///{file}"

    def strike(self, kind: Kind, seconds: float) -> None:
        raise NotImplementedError(f"{kind} for {seconds} s: a file is not disturbed")

    def is_locked(self) -> bool:
        with closing(sqlite3.connect(self._file, timeout=0.5, isolation_level=None)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
        return False

    def rests(self) -> list[Rest]:
        with sqlite3.connect(self._file) as connection:
            counts = [
                Rest(f"rows of {table}", connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0], 0)  # noqa: S608
                for table in ("task", "lease", "visit")
            ]
        connection.close()
        return counts


class PostgresStore:
    """A server of its own."""

    def __init__(self, server: PostgresServer, proxy: Proxy) -> None:
        self._server, self._proxy = server, proxy
        self.direct = server.url(connections=str(CONNECTIONS))
        self.url = self.direct.replace(f":{server.port}/", f":{proxy.port}/")

    def strike(self, kind: Kind, seconds: float) -> None:
        match kind:
            case Kind.RESTART:
                self._server.stop("immediate")
                time.sleep(seconds)
                self._server.start()
            case Kind.TERMINATE:
                self._server.sql(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shoal' AND random() < 0.7"
                )
            case _:
                strike_the_way(self._proxy, kind, seconds, b"exchange")

    def is_locked(self) -> bool:
        return False  # a call is one statement, which the server ends alone

    def rests(self) -> list[Rest]:
        connected = int(self._server.sql("SELECT count(*) FROM pg_stat_activity WHERE usename = 'shoal'"))
        tables = [
            Rest(f"rows of {table}", int(self._server.sql(f"SELECT count(*) FROM shoal.{table}", database="shoal")), 0)  # noqa: S608
            for table in ("task", "visit")
        ]
        return [Rest("connections", connected, 0), *tables]


class RedisStore:
    """A server of its own that syncs every write."""

    def __init__(self, server: RedisServer, proxy: Proxy, partitions: int) -> None:
        self._server, self._proxy, self._partitions = server, proxy, partitions
        options = f"?partitions={partitions}"
        self.direct = f"{server.url}{options}"
        self.url = f"redis://127.0.0.1:{proxy.port}/0{options}"

    def strike(self, kind: Kind, seconds: float) -> None:
        match kind:
            case Kind.RESTART:
                self._server.kill()
                time.sleep(seconds)
                self._server.start()
            case Kind.FLUSH:
                self._server.ask("SCRIPT", "FLUSH")
            case _:
                strike_the_way(self._proxy, kind, seconds, b"EVALSHA")

    def is_locked(self) -> bool:
        return False  # a call is one script, or some that lock nothing

    def rests(self) -> list[Rest]:
        clients = self._server.ask("INFO", "clients").decode()
        connected = int(clients.split("connected_clients:")[1].split()[0]) - 1  # without the one that asks
        keys = int(self._server.ask("EVAL", COUNT_KEYS, "0").decode().strip(":\r\n"))
        return [Rest("connections", connected, 0), Rest("keys", keys, 40 * self._partitions)]


def strike_the_way(proxy: Proxy, kind: Kind, seconds: float, request: bytes) -> None:
    """What a proxy can do."""
    match kind:
        case Kind.CUT:
            proxy.cut()
        case Kind.REFUSE:
            proxy.refuse()
            time.sleep(seconds)
            proxy.resume()
        case Kind.STALL:
            proxy.stall()
            time.sleep(seconds)
            proxy.cut()
        case Kind.HALF_OPEN:
            proxy.stall()
            time.sleep(seconds)
            proxy.resume()
        case Kind.LOSE_ANSWER:
            proxy.lose_answer(to=request)
        case _:
            raise NotImplementedError(kind)


@contextmanager
def opened_store(engine: str, folder: Path) -> Iterator[Store]:
    """A new, empty store for as long as the block runs."""
    if engine == "sqlite":
        yield SqliteStore(folder / "shoal.db")
    elif engine == "postgres":
        server = PostgresServer(need_programs())
        try:
            server.create()
            with running_proxy(server.port) as proxy:
                yield PostgresStore(server, proxy)
        finally:
            server.destroy()
    else:
        with running_redis() as redis, running_proxy(redis.port) as proxy:
            yield RedisStore(redis, proxy, 4 if engine == "redis-partitions" else 1)

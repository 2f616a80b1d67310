"""Servers of the benchmark's own: PostgreSQL and Redis, durable, on ports and in folders of their own."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from parts.shared.report import BenchmarkError, progress
from parts.shared.workshop import TREE

sys.path.append(str(TREE / "tests"))
from servers.postgres import PostgresServer, find_programs
from servers.redis import RedisServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

POSTGRESQL, REDIS = "postgresql", "redis"
POSTGRES_SETTINGS = {"shared_buffers": "1GB", "max_wal_size": "8GB", "checkpoint_timeout": "15min"}
REDIS_SETTINGS = ("--appendfsync", "always", "--auto-aof-rewrite-percentage", "0")
DURABILITY = {
    POSTGRESQL: "fsync on, synchronous_commit on",
    REDIS: "appendonly yes, appendfsync always",
}


class PrivateServers:
    """The servers that were asked for, for as long as the block runs."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._kinds = kinds
        self._stack = ExitStack()
        self._started: dict[str, PostgresServer | RedisServer] = {}

    def __enter__(self) -> PrivateServers:
        with ExitStack() as stack:
            for kind in self._kinds:
                progress(f"starting {kind} …")
                self._started[kind] = _start_postgres(stack) if kind == POSTGRESQL else _start_redis(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def url(self, kind: str) -> str:
        """Where the server of this kind is."""
        server = self._started[kind]
        return server.url() if isinstance(server, PostgresServer) else server.url

    def version(self, kind: str) -> str:
        """What the server of this kind is."""
        server = self._started[kind]
        if isinstance(server, PostgresServer):
            return server.sql("SHOW server_version").split()[0]
        return re.search(rb"redis_version:([\d.]+)", server.ask("INFO", "server"))[1].decode()

    def processes(self, engine: str) -> list[int]:
        """The server behind an engine URL with all that it has started; nothing if it is not one of these."""
        for kind, server in self._started.items():
            if engine.startswith(self.url(kind)):
                process = server._process if isinstance(server, PostgresServer) else server.process  # noqa: SLF001 - ours
                return list(family(process.pid)) if process else []
        return []

    def cpu_seconds(self, engine: str) -> float:
        """CPU time of the server behind an engine URL, and all that it has started; 0 if it is not one of these."""
        return sum(map(cpu_seconds_of, self.processes(engine)))

    def cpu_seconds_of_kind(self, kind: str) -> float:
        """CPU time of the server of a kind; 0 if none was started."""
        return self.cpu_seconds(self.url(kind)) if kind in self._started else 0.0

    def calls(self, kind: str) -> int:
        """Transactions (PostgreSQL) or scripts run (Redis) so far; 0 where there is no server."""
        server = self._started.get(kind)
        if server is None:
            return 0
        if isinstance(server, PostgresServer):
            return int(server.sql("SELECT sum(xact_commit + xact_rollback) FROM pg_stat_database"))
        run = re.search(rb"cmdstat_evalsha:calls=(\d+)", server.ask("INFO", "commandstats"))
        return int(run[1]) if run else 0

    def fresh_database(self, kind: str, name: str) -> str:
        """The URL of an empty database in the server of this kind. What was there is deleted."""
        server = self._started[kind]
        if isinstance(server, PostgresServer):
            server.sql(f"DROP DATABASE IF EXISTS {name}; CREATE DATABASE {name} OWNER shoal")
            return server.url(name)
        server.ask("FLUSHALL")
        return server.url


def cpu_seconds_of(pid: int) -> float:
    """CPU time of a living process and of its children that have ended, all threads counted."""
    total = 0.0
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            total += int((thread / "schedstat").read_text().split()[0]) / 1e9
        ended = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15]
        total += sum(map(int, ended)) / os.sysconf("SC_CLK_TCK")
    return total


def family(pid: int) -> Iterator[int]:
    """A process and all that it has started."""
    yield pid
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield from family(int(child))


def _start_postgres(stack: ExitStack) -> PostgresServer:
    programs = find_programs()
    if programs is None:
        raise BenchmarkError("PostgreSQL is not installed (Debian: apt-get install postgresql).")
    server = PostgresServer(programs)
    stack.callback(server.destroy)
    server.create()
    for name, value in POSTGRES_SETTINGS.items():
        server.sql(f"ALTER SYSTEM SET {name} = '{value}'")
    server.restart("fast")
    return server


def _start_redis(stack: ExitStack) -> RedisServer:
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-redis-"))
    server = RedisServer(Path(folder), *REDIS_SETTINGS)
    server.start()
    stack.callback(server.kill)
    return server

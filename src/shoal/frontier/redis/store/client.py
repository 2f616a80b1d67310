"""The connection to Redis: scripts by name, and what has to be right about a server before Shoal trusts it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Protocol
from zlib import crc32

from redis.asyncio import ConnectionPool, Redis, RedisCluster, SSLConnection
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError, NoScriptError, RedisError, TimeoutError  # noqa: A004

from shoal.core.clock import Clock
from shoal.errors import EngineRefused
from shoal.frontier.contract.timeouts import StoreTimeouts
from shoal.frontier.redis.codec.encoding import encode
from shoal.frontier.redis.errors import clear_errors, wrote_to_closed
from shoal.frontier.redis.store.address import RedisAddress, Shape
from shoal.frontier.redis.store.scripts import SCRIPTS, Script
from shoal.frontier.shared.refusals import storable_only

CALLS_AT_ONCE = 32
"""Most calls of one engine that are under way, and so its connections (in a cluster: to each node). Others wait."""

TIMEOUTS = StoreTimeouts(connect=5.0, call=20.0)
"""A connection that does not answer for so long is taken to be dead."""


class RedisClient(Protocol):
    """What this engine needs of the library's clients for one server, for Sentinel and for a cluster."""

    async def execute_command(self, *args: Any, **options: Any) -> Any: ...

    async def aclose(self) -> None: ...


class RedisStore:
    """An open store: its client, its partitions and its clock. `clock` is for tests: it replaces the server's time."""

    def __init__(self, client: RedisClient, address: RedisAddress, partitions: int, clock: Clock | None) -> None:
        self.client = client
        self.address = address
        self.partitions = partitions
        self.scripts = SCRIPTS
        self._clock = clock
        self._closed = False
        self._room = asyncio.Semaphore(CALLS_AT_ONCE)

    @property
    def name(self) -> str:
        """The server, as the beginning of a sentence."""
        return f"Redis at {self.address.shown}"

    def tag(self, partition: int) -> str:
        """What all keys of a partition begin with. The braces make a cluster keep them together."""
        return f"{{{self.address.prefix}:{partition}}}"

    def partition_of(self, site: str) -> int:
        """The partition that holds a site and all that belongs to it."""
        return crc32(site.encode(errors="replace")) % self.partitions if self.partitions > 1 else 0

    async def call(self, script: str, partition: int = 0, question: object = None) -> Any:
        """Run a script in a partition. The answer is durable as far as the server's own settings make it so.

        If the connection is lost before the answer comes, EngineUnavailable is raised and nobody knows if the script
        ran. Nothing is sent twice on its own. Asking again is safe: settlements that had their effect are then
        answered as late (their results are kept), and leases that were granted unheard come back with the next exchange
        that says what its worker holds, or else when they expire.
        """
        self._must_be_open()
        now = False if self._clock is None else self._clock.now()
        with storable_only(self.name):
            payload = encode((now, self.partitions, partition, question))
        async with self._room:
            return await self._run(self.scripts[script], self.tag(partition), payload)

    async def _run(self, script: Script, tag: str, payload: bytes) -> Any:
        with clear_errors(self.address.shown):
            try:
                return await self._send("EVALSHA", script.sha, 1, tag, payload)
            except NoScriptError:  # first use, a restart, or SCRIPT FLUSH
                return await self._send("EVAL", script.text, 1, tag, payload)

    async def _send(self, *words: Any) -> Any:
        """If a connection breaks, all that are idle are closed: they may wait for answers that never come. A cluster's
        client does so by itself."""
        try:
            return await self.client.execute_command(*words)
        except (ConnectionError, TimeoutError, RuntimeError) as error:
            broken = not isinstance(error, RuntimeError) or wrote_to_closed(error)
            if broken and isinstance(self.client, Redis | SentinelClient):
                with contextlib.suppress(RedisError, OSError):
                    await self.client.connection_pool.disconnect(inuse_connections=False)
            raise

    async def command(self, *words: Any) -> Any:
        """One plain command, for looking only."""
        self._must_be_open()
        async with self._room:
            with clear_errors(self.address.shown):
                return await self._send(*words)

    async def close(self) -> None:
        """Let go. The second time: nothing."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(RedisError, OSError):
                await self.client.aclose()

    def _must_be_open(self) -> None:
        if self._closed:
            raise EngineRefused(f"The connection to Redis at {self.address.shown} has been closed.")


class SentinelClient:
    """A client for whichever server Sentinel says is the master at the moment."""

    def __init__(self, address: RedisAddress, **options: Any) -> None:
        about_sentinels = {"socket_timeout": options["socket_connect_timeout"], "protocol": 2}
        self._watchers = Sentinel(address.hosts, sentinel_kwargs=about_sentinels)  # type: ignore[no-untyped-call]
        self._master: Any = self._watchers.master_for(
            address.master, connection_pool_class=SentinelConnectionPool, **options
        )

    @property
    def connection_pool(self) -> ConnectionPool:
        pool: ConnectionPool = self._master.connection_pool
        return pool

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        return await self._master.execute_command(*args, **options)

    async def aclose(self) -> None:
        await self._master.aclose()
        for watcher in self._watchers.sentinels:
            await watcher.aclose()


def connect(address: RedisAddress, timeouts: StoreTimeouts) -> RedisClient:
    """A client for the servers of an address. Nothing is sent before its first command."""
    options: dict[str, Any] = {
        "username": address.username,
        "password": address.password,
        "socket_timeout": timeouts.call,
        "socket_connect_timeout": timeouts.connect,
        "socket_keepalive": True,
        "protocol": 2,
    }
    tls: dict[str, Any] = {"ssl_ca_certs": address.tls_ca} if address.tls and address.tls_ca else {}
    never_twice = Retry(NoBackoff(), 0)
    match address.shape:
        case Shape.CLUSTER:
            nodes = [ClusterNode(host, port) for host, port in address.hosts]
            return RedisCluster(
                startup_nodes=nodes,
                ssl=address.tls,
                retry=never_twice,
                max_connections=CALLS_AT_ONCE + 1,
                **options,
                **tls,
            )
        case Shape.SENTINEL:
            return SentinelClient(address, db=address.db, retry=never_twice, **options)
        case Shape.SINGLE:
            [(host, port)] = address.hosts[:1]
            if address.tls:
                tls["connection_class"] = SSLConnection
            pool = ConnectionPool(
                host=host,
                port=port,
                db=address.db,
                retry=never_twice,
                **options,
                **tls,
            )
            return Redis.from_pool(pool)

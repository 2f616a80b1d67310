"""Opening Redis: URLs, servers that are refused, and what is said about those that may lose something."""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import ResponseError
from structlog.testing import capture_logs

from servers.redis import RedisServer, free_port, running_redis
from servers.redis_stage import opened, own_store
from shoal.core import log_events
from shoal.errors import BadSettings, EngineBroken, EngineFull, EngineRefused, EngineUnavailable, ShoalError
from shoal.frontier.redis.engine import open_redis
from shoal.frontier.redis.errors import translated
from shoal.frontier.redis.schema import _check
from shoal.frontier.redis.store.address import RedisAddress, Shape, read_address


async def error_of(url: str, **options: Any) -> ShoalError:
    with pytest.raises(ShoalError) as caught:
        await (await open_redis(url, **options)).close()
    sentence = str(caught.value)
    assert sentence.endswith((".", "/0.")), sentence
    assert "\n" not in sentence
    return caught.value


async def test_no_server_there() -> None:
    error = await error_of(f"redis://127.0.0.1:{free_port()}/0")
    assert isinstance(error, EngineUnavailable)
    assert "cannot be reached" in str(error)


async def test_no_such_host() -> None:
    error = await error_of("redis://no-such-host.invalid/0")
    assert isinstance(error, EngineUnavailable)
    assert "no-such-host.invalid" in str(error)


async def test_passwords(stack: AsyncExitStack) -> None:
    with running_redis("--requirepass", "right") as guarded:
        missing = await error_of(guarded.url)
        wrong = await error_of(f"redis://:wrong@127.0.0.1:{guarded.port}/0")
        assert isinstance(missing, EngineRefused)
        assert isinstance(wrong, EngineRefused)
        assert "asks for a password" in str(missing)
        assert "refused" in str(wrong)
        await opened(stack, f"redis://:right@127.0.0.1:{guarded.port}/0")


async def test_a_cluster_that_refuses_and_one_that_is_not_there() -> None:
    cluster = ("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--requirepass", "right")
    with tempfile.TemporaryDirectory(prefix="shoal-redis-") as folder:
        node = RedisServer(Path(folder), *cluster, port=free_port(also=10_000))
        node.start()
        missing = await error_of(f"redis+cluster://127.0.0.1:{node.port}")
        wrong = await error_of(f"redis+cluster://:wrong@127.0.0.1:{node.port}")
        unfinished = await error_of(f"redis+cluster://:right@127.0.0.1:{node.port}")
        node.kill()
        gone = await error_of(f"redis+cluster://:right@127.0.0.1:{node.port}")
    assert [type(error) for error in (missing, wrong)] == [EngineRefused, EngineRefused]
    assert [type(error) for error in (unfinished, gone)] == [EngineUnavailable, EngineUnavailable]
    assert "asks for a password" in str(missing)
    assert "refused" in str(wrong)
    assert "cannot be reached" in str(gone)


async def test_no_sentinel_there() -> None:
    error = await error_of(f"redis+sentinel://127.0.0.1:{free_port()}/main/0")
    assert isinstance(error, EngineUnavailable)
    assert "<" not in str(error)


async def test_no_such_database(server: RedisServer) -> None:
    error = await error_of(f"redis://127.0.0.1:{server.port}/999")
    assert isinstance(error, EngineRefused)
    assert "database" in str(error)


async def test_a_store_that_must_exist(server: RedisServer, stack: AsyncExitStack) -> None:
    url = own_store(server)
    assert "nothing of Shoal" in str(await error_of(url, create=False))
    await opened(stack, url)
    await opened(stack, url, create=False)


async def test_partitions_are_settled_when_the_store_is_made(server: RedisServer, stack: AsyncExitStack) -> None:
    url = f"{server.url}?prefix=settled"
    await opened(stack, f"{url}&partitions=3")
    error = await error_of(f"{url}&partitions=4")
    assert isinstance(error, EngineBroken)
    assert "3 partitions and not 4" in str(error)
    assert (await opened(stack, url))._store.partitions == 3


async def test_a_store_of_another_version(server: RedisServer, stack: AsyncExitStack) -> None:
    url = f"{server.url}?prefix=future"
    engine = await opened(stack, url)
    await engine._store.command("HSET", "{future:0}:meta", "version", 99)
    error = await error_of(url)
    assert isinstance(error, EngineBroken)
    assert "schema 99" in str(error)


async def test_eviction_is_refused() -> None:
    with running_redis("--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru") as forgetful:
        error = await error_of(forgetful.url)
        assert isinstance(error, EngineRefused)
        assert "allkeys-lru" in str(error)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--appendonly", "no"), "since its last snapshot"),
        (("--appendfsync", "everysec"), "up to one second"),
        (("--appendfsync", "no"), "half a minute"),
        (("--appendfsync", "always"), None),
    ],
)
async def test_what_can_be_lost_is_said(stack: AsyncExitStack, options: tuple[str, ...], said: str | None) -> None:
    with running_redis(*options) as lossy, capture_logs() as logs:
        engine = await opened(stack, lossy.url)
        assert [line["reason"] for line in logs if line["event"] == log_events.STORE_MAY_LOSE] == list(engine.losses)
        assert len(engine.losses) == (said is not None)
        assert said is None or said in engine.losses[0]
        await stack.aclose()


def test_an_old_server_is_refused() -> None:
    address = RedisAddress(Shape.SINGLE, (("h", 1),))
    with pytest.raises(EngineRefused, match=r"6\.0\.16 at h:1 is too old"):
        _check(address, {"redis_version": "6.0.16", "aof_enabled": 1}, {})
    assert _check(address, {"redis_version": "6.2.0", "aof_enabled": 1}, {"appendfsync": "always"}) == []
    assert "does not say" in _check(address, {"redis_version": "7.0.0", "aof_enabled": 1}, {})[0]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("LOADING Redis is loading the dataset in memory", EngineUnavailable),
        ("READONLY You can't write against a read only replica.", EngineUnavailable),
        ("NOREPLICAS Not enough good replicas to write.", EngineUnavailable),
        ("MASTERDOWN Link with MASTER is down", EngineUnavailable),
        ("CLUSTERDOWN Hash slot not served", EngineUnavailable),
        ("OOM command not allowed when used memory > 'maxmemory'.", EngineFull),
        ("MISCONF Errors writing to the AOF file: No space left on device", EngineFull),
        ("WRONGTYPE Operation against a key holding the wrong kind of value", EngineBroken),
    ],
)
def test_complaints_of_redis(text: str, kind: type[ShoalError]) -> None:
    error = translated(ResponseError(text), "h:1")
    assert isinstance(error, kind)
    assert "h:1" in str(error)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://h:6379/abc", "not a number"),
        ("redis://h:99999/0", "port 99999"),
        ("redis://h/0?colour=red", "unknown option 'colour'"),
        ("redis://h/0?prefix=a{b", "prefix"),
        ("redis://h/0?partitions=0", "partitions"),
        ("redis+cluster://h/3", "only database 0"),
        ("redis+sentinel://h", "no master"),
        ("memcached://h", "not a Redis URL"),
    ],
)
def test_urls_that_mean_nothing(url: str, said: str) -> None:
    with pytest.raises(BadSettings, match="Write it like") as caught:
        read_address(url)
    assert said in str(caught.value)


def test_urls() -> None:
    full = read_address("rediss://us%40er:p%3Aw@[::1]:1/5?prefix=a&partitions=7")
    assert full == RedisAddress(Shape.SINGLE, (("::1", 1),), True, 5, "us@er", "p:w", "", "a", 7)
    assert read_address("redis://h?cluster=1").shape is Shape.CLUSTER
    assert read_address("redis+cluster://a:1,b").hosts == (("a", 1), ("b", 6379))
    watched = read_address("redis+sentinel://:pw@a,b:7/main/2")
    assert (watched.shape, watched.hosts) == (Shape.SENTINEL, (("a", 26379), ("b", 7)))
    assert (watched.master, watched.db, watched.password) == ("main", 2, "pw")
    assert "pw" not in watched.shown

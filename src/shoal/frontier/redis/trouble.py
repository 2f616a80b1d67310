"""What Redis complains about, as Shoal's errors: the one place that knows."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

from redis.exceptions import (
    AuthenticationError,
    AuthenticationWrongNumberOfArgsError,
    AuthorizationError,
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,  # noqa: A004 - Redis' own, as everywhere in this file
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TimeoutError,  # noqa: A004
)

from shoal.errors import EngineBroken, EngineError, EngineFull, EngineUnavailable

_BEGINNINGS: tuple[tuple[str, type[EngineError], str], ...] = (
    ("NOAUTH", EngineUnavailable, "Redis at {where} asks for a password. Put it into the URL: redis://:password@host."),
    ("WRONGPASS", EngineUnavailable, "Redis at {where} refused the user name or password in the engine URL."),
    ("NOPERM", EngineUnavailable, "The Redis user of the engine URL may not do what Shoal needs at {where}: {text}."),
    ("OOM", EngineFull, "Redis at {where} has no memory left (maxmemory). Raise it; what was acknowledged is safe."),
    ("MISCONF", EngineFull, "Redis at {where} cannot write to its disk and refuses changes. Look at its log and disk."),
    ("LOADING", EngineUnavailable, "Redis at {where} is still loading its data. It will answer when that is done."),
    ("READONLY", EngineUnavailable, "Redis at {where} is a replica that cannot be written to. Name its master."),
    ("MASTERDOWN", EngineUnavailable, "Redis at {where} has lost its master."),
    ("CLUSTERDOWN", EngineUnavailable, "The Redis Cluster at {where} is down: {text}."),
    ("Cluster mode is not enabled", EngineUnavailable, "Redis at {where} is no cluster: write redis://host:port/0."),
    ("MOVED", EngineUnavailable, "Redis at {where} is a part of a cluster: write redis+cluster://host:port."),
    ("BUSY", EngineUnavailable, "Redis at {where} is busy with a script of another program."),
    ("invalid DB index", EngineUnavailable, "Redis at {where} does not have the database that the engine URL names."),
    ("DB index is out of range", EngineUnavailable, "Redis at {where} has fewer databases than the engine URL names."),
    ("SELECT is not allowed", EngineUnavailable, "Redis at {where} is a cluster: write redis+cluster://host:port."),
    ("WRONGTYPE", EngineBroken, "The keys of Shoal at {where} were changed by another program. Use another prefix."),
)

_KINDS: tuple[tuple[type[RedisError], str], ...] = (
    (OutOfMemoryError, "OOM"),
    (BusyLoadingError, "LOADING"),
    (ReadOnlyError, "READONLY"),
    (ClusterDownError, "CLUSTERDOWN"),
    (NoPermissionError, "NOPERM"),
    (AuthenticationWrongNumberOfArgsError, "WRONGPASS"),
    (AuthenticationError, "WRONGPASS"),
    (AuthorizationError, "NOPERM"),
)


@contextmanager
def clear_errors(where: str) -> Iterator[None]:
    """Translate what the Redis library raises."""
    try:
        yield
    except (RedisError, OSError) as error:
        raise translated(error, where) from error


def translated(error: Exception, where: str) -> Exception:
    """The error of Shoal that says the same; the error itself, if it is a mistake of ours."""
    text = str(error)
    for beginning, kind, sentence in _BEGINNINGS:
        if text.startswith(beginning):
            return kind(sentence.format(where=where, text=text.removeprefix(beginning).strip(" .:")))
    for kind_of_redis, beginning in _KINDS:
        if isinstance(error, kind_of_redis):
            return translated(ResponseError(f"{'NOAUTH' if 'required' in text.lower() else beginning} {text}"), where)
    if isinstance(error.__cause__ or error, ssl.SSLError) or "SSL" in text or "certificate" in text:
        return EngineUnavailable(f"No safe connection to Redis at {where}: {text.rstrip('.')}.")
    if "Name or service not known" in text or "nodename nor servname" in text or "No address associated" in text:
        return EngineUnavailable(f"There is no such host: {where}. Check the engine URL.")
    if "Temporary failure in name resolution" in text:
        return EngineUnavailable(f"The name of the host cannot be resolved: {where}. Check the engine URL and DNS.")
    if isinstance(error, TimeoutError):
        return EngineUnavailable(f"Redis at {where} did not answer in time.")
    if isinstance(error, ConnectionError | RedisClusterException | OSError):
        return EngineUnavailable(f"Redis at {where} cannot be reached: {_short(text)}.")
    return error


def _short(text: str) -> str:
    return (text.splitlines()[0] if text else "the connection was closed").rstrip(".")[:200]

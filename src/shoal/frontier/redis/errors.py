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
    ClusterError,
    ConnectionError,  # noqa: A004 - Redis' own, as everywhere in this file
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TimeoutError,  # noqa: A004
)

from shoal.errors import EngineBroken, EngineError, EngineFull, EngineRefused, EngineUnavailable

_BEGINNINGS: tuple[tuple[str, type[EngineError], str], ...] = (
    ("NOAUTH", EngineRefused, "Redis at {where} asks for a password. Put it into the URL: redis://:password@host."),
    ("WRONGPASS", EngineRefused, "Redis at {where} refused the user name or password in the engine URL."),
    ("NOPERM", EngineRefused, "The Redis user of the engine URL may not do what Shoal needs at {where}: {text}."),
    ("OOM", EngineFull, "Redis at {where} has no memory left (maxmemory). Raise it; what was acknowledged is safe."),
    ("MISCONF", EngineFull, "Redis at {where} cannot write to its disk and refuses changes. Look at its log and disk."),
    ("LOADING", EngineUnavailable, "Redis at {where} is still loading its data. It will answer when that is done."),
    ("READONLY", EngineUnavailable, "Redis at {where} is a replica that cannot be written to. Name its master."),
    ("MASTERDOWN", EngineUnavailable, "Redis at {where} has lost its master."),
    ("CLUSTERDOWN", EngineUnavailable, "The Redis Cluster at {where} is down: {text}."),
    ("Cluster mode is not enabled", EngineRefused, "Redis at {where} is no cluster: write redis://host:port/0."),
    ("MOVED", EngineRefused, "Redis at {where} is a part of a cluster: write redis+cluster://host:port."),
    ("NOREPLICAS", EngineUnavailable, "Redis at {where} has fewer replicas than it is told to have before it writes."),
    ("BUSY", EngineUnavailable, "Redis at {where} is busy with a script that takes long."),
    (
        "invalid username-password pair",
        EngineRefused,
        "Redis at {where} refused the name or password in the engine URL.",
    ),
    ("Authentication required", EngineRefused, "Redis at {where} asks for a password. Put it into the engine URL."),
    ("invalid DB index", EngineRefused, "Redis at {where} does not have the database that the engine URL names."),
    ("DB index is out of range", EngineRefused, "Redis at {where} has fewer databases than the engine URL names."),
    ("SELECT is not allowed", EngineRefused, "Redis at {where} is a cluster: write redis+cluster://host:port."),
    ("WRONGTYPE", EngineBroken, "The keys of Shoal at {where} were changed by another program. Use another prefix."),
)

_NO_NODE = "Redis Cluster cannot be connected. Please provide at least one reachable node: "
"""What a cluster's client says before the reason."""

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
    except (RedisError, RedisClusterException, OSError) as error:
        raise translated(error, where) from error
    except RuntimeError as error:
        if not wrote_to_closed(error):
            raise
        raise EngineUnavailable(f"Redis at {where} cannot be reached: the connection was closed.") from error


def wrote_to_closed(error: RuntimeError) -> bool:
    """Whether this is how uvloop says that a connection had been closed when somebody wrote to it."""
    return "the handler is closed" in str(error)


def translated(error: Exception, where: str) -> Exception:
    """The error of Shoal that says the same; the error itself, if it is a mistake of ours."""
    text = str(error).removeprefix(_NO_NODE)
    for beginning, said, sentence in _BEGINNINGS:
        if text.startswith(beginning):
            return said(sentence.format(where=where, text=text.removeprefix(beginning).strip(" .:")))
    if text.startswith("No master found"):  # what follows is about the library's own objects
        return EngineUnavailable(f"The sentinels at {where} know of no master by that name, or do not answer.")
    for kind_of_redis, beginning in _KINDS:
        if isinstance(error, kind_of_redis):
            return translated(ResponseError(f"{'NOAUTH' if 'required' in text.lower() else beginning} {text}"), where)
    if isinstance(error.__cause__ or error, ssl.SSLError) or "SSL" in text or "certificate" in text:
        kind = EngineRefused if "certificate" in text.lower() else EngineUnavailable
        return kind(f"No safe connection to Redis at {where}: {text.rstrip('.')}.")
    if "Name or service not known" in text or "nodename nor servname" in text or "No address associated" in text:
        return EngineUnavailable(f"There is no such host: {where}. Check the engine URL.")
    if "Temporary failure in name resolution" in text:
        return EngineUnavailable(f"The name of the host cannot be resolved: {where}. Check the engine URL and DNS.")
    if isinstance(error, TimeoutError):
        return EngineUnavailable(f"Redis at {where} did not answer in time.")
    if isinstance(error, ConnectionError | ClusterError | RedisClusterException | OSError):
        return EngineUnavailable(f"Redis at {where} cannot be reached: {_short(text)}.")
    return error


def _short(text: str) -> str:
    return (text.splitlines()[0] if text else "the connection was closed").rstrip(".")[:200]

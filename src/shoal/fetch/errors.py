"""Error translation: what aiohttp, sockets and TLS raise becomes a FetchError, in this one place."""

from __future__ import annotations

import errno
import socket
import ssl
import zlib

import aiohttp
import brotli  # type: ignore[import-untyped]
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp_socks import ProxyConnectionError, ProxyError, ProxyTimeoutError

from shoal.core.outcome import Blame
from shoal.fetch.guard.rules import NOT_PUBLIC
from shoal.fetch.guard.sockets import FORBIDDEN
from shoal.fetch.own_network import has_default_route
from shoal.fetch.protocol import FetchError, Stage

_OF_SOCKS = (ProxyConnectionError, ProxyError, ProxyTimeoutError)
FOREIGN = (aiohttp.ClientError, HttpProcessingError, OSError, *_OF_SOCKS, zlib.error, brotli.error)
"""All that others raise at us. OSError includes ssl.SSLError, socket.gaierror and TimeoutError."""

_REFUSALS = {
    errno.ECONNREFUSED: ("connection refused", Blame.HOST),
    errno.ECONNRESET: ("connection reset", Blame.HOST),
    errno.EHOSTUNREACH: ("host not reachable", Blame.HOST),
    errno.ENETUNREACH: ("network not reachable", Blame.HOST),
    errno.ETIMEDOUT: ("connection timed out", Blame.HOST),
    errno.EMFILE: ("too many open files", Blame.WORKER),
    FORBIDDEN: (NOT_PUBLIC, Blame.POLICY),
}


NO_SUCH_HOST = "no such host"


def translated(error: Exception, total: float | None, patience: float, connect: float) -> FetchError:
    """The FetchError for it. `total`: the time for all of it is over, and it was this long."""
    match error:
        case TimeoutError() if total is not None:
            return FetchError(f"timed out after {total:g} s", Blame.HOST)
        case aiohttp.SocketTimeoutError():
            return FetchError(f"no data for {patience:g} s", Blame.HOST)
        case TimeoutError() if error.errno is None:
            return FetchError(f"no connection within {connect:g} s", Blame.HOST, stage=Stage.CONNECTION)
        case aiohttp.ClientConnectorCertificateError():
            found = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
            return FetchError(f"TLS certificate not valid: {found}", Blame.HOST, permanent=True)
        case aiohttp.ClientConnectorDNSError():
            known = error.os_error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
            text, stage = (NO_SUCH_HOST, Stage.CONNECTION) if known else ("name lookup failed", Stage.NETWORK)
            return FetchError(text, Blame.HOST, stage=stage)
        case ssl.SSLError():
            reason = getattr(getattr(error, "os_error", error), "reason", None) or "broken off"
            return FetchError(f"TLS failed: {reason.lower().replace('_', ' ')}", Blame.HOST, stage=Stage.CONNECTION)
        case aiohttp.ServerDisconnectedError():
            return FetchError("connection closed before an answer", Blame.HOST)
        case aiohttp.ClientPayloadError():
            return FetchError("body cut short", Blame.HOST)
        case HttpProcessingError():
            return FetchError(f"malformed answer: {error.message.strip().splitlines()[0][:100]}", Blame.URL)
        case zlib.error() | brotli.error():
            return FetchError("damaged compressed body", Blame.URL)
        case OSError():
            text, blame = _REFUSALS.get(error.errno or 0, (f"connection failed: {error.strerror}", Blame.HOST))
            return FetchError(text, blame, stage=_stage(error))
        case _:
            return FetchError(f"request failed: {error}", Blame.HOST)


def _stage(error: OSError) -> Stage:
    """Where nothing leads to this one target, although something leads out, it is the target that is away."""
    if error.errno == errno.ENETDOWN:
        return Stage.NETWORK
    if error.errno in (errno.ENETUNREACH, errno.EHOSTUNREACH) and not has_default_route():
        return Stage.NETWORK
    return Stage.CONNECTION if isinstance(error, aiohttp.ClientConnectorError) else Stage.ANSWER


def by_source(error: Exception, told: FetchError) -> FetchError:
    """What `error` means where we connect from an address of our own that was asked for: its failure, if it is not one
    of this machine's; in doubt, if it is of another kind than those of the target."""
    if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
        return FetchError("this machine does not have the source address", Blame.EXIT)
    if "no matching local address" in str(getattr(error, "os_error", error)):
        return FetchError("the target has no address of the kind of the source address", Blame.EXIT, doubtful=True)
    return told


_OF_THE_TARGET = frozenset({0x03, 0x04, 0x05, 0x06})
"""What a SOCKS proxy answers where it could not get through: network or host not reachable, refused, took too long."""


def through_proxy(error: Exception, told: FetchError) -> FetchError:
    """What `error` means where a proxy stands between: surely its own failure, or one that may be the target's."""
    match error:
        case ProxyTimeoutError() | ProxyConnectionError() | aiohttp.ClientProxyConnectionError():
            return FetchError("the proxy cannot be reached", Blame.EXIT)
        case aiohttp.ClientHttpProxyError(status=status):
            return refused_by_proxy(status)
        case ProxyError():
            words = f"the proxy says: {str(error).strip().lower()[:100]}"
            return FetchError(words, Blame.EXIT, doubtful=error.error_code in _OF_THE_TARGET)
        case _:
            return FetchError(f"{told.text} (through a proxy)", Blame.EXIT, doubtful=True)


PROXY_REFUSALS = frozenset({401, 403, 407, 500, 502, 503, 504})
"""Statuses that a proxy which passes plain requests on may have made itself. Only 407 is surely its own."""


def refused_by_proxy(status: int) -> FetchError:
    """A proxy, or the target through it, did not do what was asked."""
    if status == 407:
        return FetchError("the proxy wants another password", Blame.EXIT)
    return FetchError(f"HTTP {status} (through a proxy)", Blame.EXIT, permanent=status in (401, 403), doubtful=True)

"""What others raise at us while we fetch, in our own words: the one place where foreign errors become FetchErrors."""

from __future__ import annotations

import errno
import socket
import ssl
import zlib

import aiohttp
import brotli  # type: ignore[import-untyped]
from aiohttp.http_exceptions import HttpProcessingError

from shoal.fetch.protocol import FetchError
from shoal.outcome import Blame

FOREIGN = (aiohttp.ClientError, HttpProcessingError, OSError, zlib.error, brotli.error)
"""All that others raise at us. OSError includes ssl.SSLError, socket.gaierror and TimeoutError."""

_REFUSALS = {
    errno.ECONNREFUSED: ("connection refused", Blame.HOST),
    errno.ECONNRESET: ("connection reset", Blame.HOST),
    errno.EHOSTUNREACH: ("host not reachable", Blame.HOST),
    errno.ENETUNREACH: ("network not reachable", Blame.HOST),
    errno.ETIMEDOUT: ("connection timed out", Blame.HOST),
    errno.EMFILE: ("too many open files", Blame.WORKER),
}


def translated(error: Exception, total: float | None, patience: float, connect: float) -> FetchError:
    """The FetchError for it. `total`: the time for all of it is over, and it was this long."""
    match error:
        case TimeoutError() if total is not None:
            return FetchError(f"timed out after {total:g} s", Blame.HOST)
        case aiohttp.SocketTimeoutError():
            return FetchError(f"no data for {patience:g} s", Blame.HOST)
        case TimeoutError() if error.errno is None:
            return FetchError(f"no connection within {connect:g} s", Blame.HOST)
        case aiohttp.ClientConnectorCertificateError():
            found = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
            return FetchError(f"TLS certificate not valid: {found}", Blame.HOST, permanent=True)
        case aiohttp.ClientConnectorDNSError():
            hopeless = error.os_error.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
            return FetchError("no such host" if hopeless else "name lookup failed", Blame.HOST)
        case ssl.SSLError():
            reason = getattr(getattr(error, "os_error", error), "reason", None) or "broken off"
            return FetchError(f"TLS failed: {reason.lower().replace('_', ' ')}", Blame.HOST)
        case aiohttp.ServerDisconnectedError():
            return FetchError("connection closed before an answer", Blame.HOST)
        case aiohttp.ClientPayloadError():
            return FetchError("body cut short", Blame.HOST)
        case HttpProcessingError():
            return FetchError(f"malformed answer: {error.message.strip().splitlines()[0][:100]}", Blame.URL)
        case zlib.error() | brotli.error():
            return FetchError("damaged compressed body", Blame.URL)
        case OSError():
            return FetchError(*_REFUSALS.get(error.errno or 0, (f"connection failed: {error.strerror}", Blame.HOST)))
        case _:
            return FetchError(f"request failed: {error}", Blame.HOST)

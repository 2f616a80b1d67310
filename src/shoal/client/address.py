"""Where the gateway is."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from shoal.errors import UsageError


class GatewayAddress(NamedTuple):
    """A URL in its parts. `path`: what comes before every path of the gateway, without a slash at its end."""

    secure: bool
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        """The URL without the path."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"


def address_of(url: str) -> GatewayAddress:
    """The parts of a URL. Raises UsageError for one that cannot be a gateway's."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
        raise UsageError(f"{url!r} is not the URL of a gateway; one looks like http://127.0.0.1:8000.")
    secure = parts.scheme == "https"
    return GatewayAddress(secure, parts.hostname, port or (443 if secure else 80), parts.path.rstrip("/"))

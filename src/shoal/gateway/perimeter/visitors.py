"""Who may speak to a gateway that asks for no keys: not a web page of somebody else, by whatever name it came here.

A browser sends what any page asks it to, also to this machine. With API keys that is no danger: a page has none, and we
have no cookies. Without keys, what is left are two headers that no page can forge. `Origin` names the page's own place;
`Host` names us, and a name that is not ours means that somebody's name was made to lead here (DNS rebinding).
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

from shoal.gateway.http.answer import Problem

ANY = "*"
MOST_KNOWN = 1000


class Visitors:
    """`hosts`: our names, besides addresses and `localhost`; `origins`: whose pages may use the API."""

    def __init__(self, hosts: Sequence[str] = (), origins: Sequence[str] = ()) -> None:
        self._names = frozenset(name.lower().rstrip(".") for name in hosts)
        self._origins = frozenset(origin.encode() for origin in origins)
        self._known: set[bytes] = set()

    def check(self, host: bytes, origin: bytes | None) -> None:
        """Raise Problem 421 for a host that is not ours, 403 for an origin that is not."""
        if host not in self._known:
            self._meet(host)
        if origin is not None and origin not in self._origins and b"*" not in self._origins:
            _, _, place = origin.lower().partition(b"://")
            if place != host.lower():
                raise Problem(
                    403, "foreign-origin",
                    "Without API keys, only pages of this gateway and of the origins in `serve.cors` may use it.",
                )  # fmt: skip

    def _meet(self, host: bytes) -> None:
        if not self._is_ours(str(host, "latin-1")):
            raise Problem(
                421, "foreign-host",
                "Without API keys, this gateway answers to its address, to localhost, and to names in `serve.hosts`.",
            )  # fmt: skip
        if len(self._known) < MOST_KNOWN:
            self._known.add(host)

    def _is_ours(self, host: str) -> bool:
        if ANY in self._names:
            return True
        name = host.lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0].rstrip(".")
        return name == "localhost" or name.endswith(".localhost") or name in self._names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True

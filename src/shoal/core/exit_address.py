"""Addresses of exits, as people write them: proxies, local source addresses, direct. Pure; nothing here connects.

    direct                             from this machine as it is
    http://user:password@host:8080     an HTTP proxy; https:// where the proxy itself speaks TLS
    socks5://user:password@host:1080   a SOCKS proxy, which also looks names up
    source://192.0.2.7                 from this machine, with that address of its own
    tor                                by a Tor daemon that each worker starts for itself

An exit's *name* is what its clocks are kept by and what is shown: it never contains a password.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import unquote, urlsplit

from shoal.core.task import DIRECT
from shoal.errors import BadSettings

PORTS = {"http": 8080, "https": 443, "socks5": 1080}
"""Known kinds of proxies, and where they listen unless their URL says otherwise."""

SOURCE = "source"
TOR = "tor"
TOR_NAMED = "tor-"
"""How the names of Tor circuits begin, each of which is a daemon's."""
"""This way out, and the pool that has it unless the settings say otherwise."""

FORMS = (
    "direct, http://HOST:PORT, https://HOST:PORT, socks5://HOST:PORT (each with USER:PASSWORD@), source://ADDRESS, "
    "or tor"
)
_LEGIBLE = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class ExitAddress:
    """A way out, taken apart. `scheme`: one of PORTS, `source`, `direct` or `tor`.

    `tor` stands for as many exits as there are workers; each has a name of its own.
    """

    scheme: str
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = ""

    @property
    def is_proxy(self) -> bool:
        """Whether requests pass through somebody else's machine."""
        return self.scheme in PORTS

    @property
    def name(self) -> str:
        """What the exit is called. Two users of one proxy are two exits: gateways give each an address of its own."""
        if not self.is_proxy:
            return self.host or self.scheme
        place = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        return f"{place}~{sha256(self.user.encode()).hexdigest()[:6]}" if self.user else place

    @property
    def shown(self) -> str:
        """The address without its secrets."""
        if not self.is_proxy:
            return f"{SOURCE}://{self.host}" if self.host else self.scheme
        return f"{self.scheme}://{'***@' if self.user else ''}{self.name.partition('~')[0]}"


@dataclass(frozen=True, slots=True)
class TorOptions:
    """How the daemons of workers are run. `path`: the program. `folder`: None = this user's folder for state.

    `new_identity_every`: so many requests, and another identity is asked for; 0 = only where a site has had enough.
    `bootstrap_timeout`: seconds for finding a way into the network. `torrc`: more lines for tor's own configuration.
    `identity_pause`: seconds between two new identities. Tor's own limit: it would keep a second one waiting that long.
    `answer_within`: seconds for one reply of the daemon. It comes over loopback; one that takes longer is not well.
    """

    path: str = "tor"
    folder: str | None = None
    new_identity_every: int = 0
    bootstrap_timeout: float = 120.0
    torrc: str = ""
    identity_pause: float = 10.0
    answer_within: float = 30.0


def parse_exit(text: str) -> ExitAddress:
    """Take an address apart. Raises BadSettings with one sentence, in which no password appears."""
    text = text.strip()
    if text in (DIRECT, TOR):
        return ExitAddress(text)
    if "://" not in text:
        raise BadSettings(f"{_masked(text)!r} is not an exit. Write it as {FORMS}.")
    if _LEGIBLE.fullmatch(text) is None:
        raise _wrong(text, "it has a space or another character that must be percent-encoded")
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise _wrong(text, "its port is no number from 1 to 65535, or an IPv6 address is not in brackets")
    scheme = "socks5" if parts.scheme == "socks5h" else parts.scheme
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise _wrong(text, "nothing may follow the port (a `/`, `?` or `#` in a password must be percent-encoded)")
    if not host:
        raise _wrong(text, "it names no host")
    if scheme == SOURCE:
        return ExitAddress(SOURCE, _local(text, host, port))
    if scheme not in PORTS:
        raise _wrong(text, f"there is no kind {parts.scheme!r}; known: {FORMS}")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if scheme == "socks5" and (len(user.encode()) > 255 or len(password.encode()) > 255):
        raise _wrong(text, "SOCKS allows 255 bytes for a name and for a password")
    if ":" in user:
        raise _wrong(text, "a user's name cannot contain a colon")
    return ExitAddress(scheme, host, PORTS[scheme] if port is None else port, user, password)


def _local(text: str, host: str, port: int | None) -> str:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise _wrong(text, "a source is an IP address of this machine, not a name") from None
    if port is not None:
        raise _wrong(text, "a source has no port")
    return str(address)


def _wrong(text: str, why: str) -> BadSettings:
    return BadSettings(f"The exit {_masked(text)!r} cannot be used: {why}.")


def _masked(text: str) -> str:
    """The text without what stands before an @: whatever is wrong with it, a password must not be shown."""
    head, slashes, rest = text.partition("://")
    if "@" not in text:
        return text
    return f"{head}{slashes}***@{(rest or head).rpartition('@')[2]}" if slashes else f"***@{text.rpartition('@')[2]}"

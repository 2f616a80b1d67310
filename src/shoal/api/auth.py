"""HTTP authentication (Basic, Digest): who a scraper is, and to which origins alone that is said."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shoal.core.url import normalise, site_of
from shoal.errors import BadURL


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """A name and a password, sent with every request. A pair `("user", "password")` is the same."""

    user: str
    password: str = field(repr=False)

    def header(self) -> str:
        """The value of `Authorization`."""
        return "Basic " + b64encode(f"{self.user}:{self.password}".encode()).decode()


@dataclass(frozen=True, slots=True)
class DigestAuth:
    """A name and a password that is never sent: the site asks (401), and is sent a hash of it and of what it asked."""

    user: str
    password: str = field(repr=False)


Credentials = BasicAuth | DigestAuth
Auth = Credentials | tuple[str, str] | Mapping[str, Credentials | tuple[str, str]]

WANTED = (
    'a pair ("user", "password"), a DigestAuth, or a mapping of hosts to these, such as {"api.example": ("me", "…")}'
)


def credentials_by_origin(given: object, start: Iterable[str]) -> dict[str, Credentials]:
    """Which credentials go where: by origin, as `https://api.example`. A host alone is meant with https.

    Those that are given without a host are for the origins of `start`. Raises ValueError, without any password, with
    what they must be.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {_named_origin(host): _credentials(each) for host, each in given.items()}
    known = _credentials(given)
    origins = {origin for url in start if (origin := _origin_or_none(url)) is not None}
    if not origins:
        raise ValueError('a mapping of hosts, as {"api.example": ("me", "…")}, where there are no start URLs')
    return dict.fromkeys(sorted(origins), known)


def origin_of(url: str) -> str:
    """Scheme, host and port of a normalised URL."""
    return f"{url[: url.index(':')]}://{site_of(url)}"


def _credentials(given: object) -> Credentials:
    if isinstance(given, tuple | list) and len(given) == 2 and all(isinstance(each, str) for each in given):
        given = BasicAuth(*given)
    if not isinstance(given, BasicAuth | DigestAuth):
        raise ValueError(WANTED)  # noqa: TRY004 - a value that a user gave
    if not isinstance(given.user, str) or not isinstance(given.password, str) or ":" in given.user:
        raise ValueError(f"{WANTED}; a user has no colon in its name")
    return given


def _named_origin(host: object) -> str:
    origin = _origin_or_none(host if isinstance(host, str) and "://" in host else f"https://{host}")
    if origin is None or not isinstance(host, str):
        raise ValueError(WANTED)
    return origin


def _origin_or_none(url: str) -> str | None:
    try:
        return origin_of(normalise(url))
    except BadURL:
        return None

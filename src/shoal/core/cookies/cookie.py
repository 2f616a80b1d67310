"""One cookie, and how the Set-Cookie field of an answer is read, by RFC 6265bis.

A crawler navigates: every request counts as one to the site itself, so that SameSite keeps nothing back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.cookies.date import cookie_date
from shoal.core.site_key import is_public_suffix

LONGEST_LIFE: Millis = 400 * 86_400_000
"""However long a site wants to be remembered, it is for 400 days at most."""
MOST_BYTES = 4096
"""Of the name and value of one cookie. What is larger is not kept."""
MOST_ATTRIBUTE = 1024

_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f]")
_SECONDS = re.compile(r"-?[0-9]+")
_ADDRESS = re.compile(r"\[.*\]|[0-9.]+")
_SECURE, _HOST = "__secure-", "__host-"


class Cookie(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One cookie. `domain`: without a dot in front; where `host_only`, no host below it is sent the cookie.

    `expires_at`: None = with its jar. One that has expired stands for "there is no such cookie any more".
    """

    name: str
    value: str
    domain: str
    path: str = "/"
    host_only: bool = True
    secure: bool = False
    expires_at: Moment | None = None
    created_at: Moment = 0

    @property
    def key(self) -> tuple[str, str, str]:
        """What two cookies of one jar cannot have in common."""
        return self.domain, self.path, self.name

    def is_over(self, now: Moment) -> bool:
        return self.expires_at is not None and self.expires_at <= now

    def __repr__(self) -> str:
        return f"Cookie({self.name!r} of {self.domain}{self.path}, value hidden)"


def parse_cookie(header: str, url: str, now: Moment) -> Cookie | None:
    """The cookie of one Set-Cookie field of an answer from `url`; None = it is none, or not one that this site may set.

    One that has expired says that there is no such cookie any more.
    """
    if _CONTROL.search(header):
        return None
    pair, *rest = header.split(";")
    name, value = _name_and_value(pair)
    if not name and (not value or value.lower().startswith((_SECURE, _HOST))):
        return None
    try:
        if len(name.encode()) + len(value.encode()) > MOST_BYTES:
            return None
    except UnicodeEncodeError:
        return None  # not text in any encoding that could be sent back
    said = _attributes(rest)
    parts = urlsplit(url)
    host, is_secure = parts.hostname or "", parts.scheme == "https"
    wanted = said.get("domain", "").removeprefix(".").lower()
    domain = _domain(wanted, host)
    path = said.get("path", "")
    cookie = Cookie(
        name,
        value,
        host if domain is None else domain,
        path if path.startswith("/") else default_path(parts.path),
        domain is None or not wanted or is_public_suffix(domain),
        "secure" in said,
        _expiry(said, now),
        now,
    )
    if (wanted and domain is None) or (cookie.secure and not is_secure) or not _keeps_its_prefix(cookie, said):
        return None
    return cookie


def _name_and_value(pair: str) -> tuple[str, str]:
    name, mark, value = pair.partition("=")
    return (name.strip(" \t"), value.strip(" \t")) if mark else ("", name.strip(" \t"))


def _attributes(parts: Iterable[str]) -> dict[str, str]:
    """By name in small letters; of several of one name the last."""
    said = {}
    for part in parts:
        name, _, value = part.partition("=")
        if len(value.strip(" \t")) <= MOST_ATTRIBUTE:
            said[name.strip(" \t").lower()] = value.strip(" \t")
    return said


def _domain(wanted: str, host: str) -> str | None:
    """The domain that a host may set a cookie for; None = not for this one, or none is wanted."""
    if not wanted:
        return None
    if wanted == host:
        return host
    if _ADDRESS.fullmatch(host) or not host.endswith(f".{wanted}") or is_public_suffix(wanted):
        return None
    return wanted


def _expiry(said: dict[str, str], now: Moment) -> Moment | None:
    """Max-Age counts before Expires. One that cannot be read is as if it were not there."""
    age = said.get("max-age", "")
    if _SECONDS.fullmatch(age):
        if age.startswith("-"):
            return 0
        return now + min(int(age[:12]) * 1000, LONGEST_LIFE) if int(age[:12]) else 0
    date = cookie_date(said["expires"]) if "expires" in said else None
    return None if date is None else min(date, now + LONGEST_LIFE)


def _keeps_its_prefix(cookie: Cookie, said: dict[str, str]) -> bool:
    """Names that begin so promise something, and are kept only if it is true."""
    name = cookie.name.lower()
    if name.startswith(_SECURE):
        return cookie.secure
    if name.startswith(_HOST):
        return cookie.secure and not said.get("domain") and said.get("path") == "/"
    return True


def default_path(path: str) -> str:
    """The path of a cookie that names none: the folder of the page that set it."""
    folder = path.rpartition("/")[0]
    return folder if folder.startswith("/") else "/"


def path_matches(path: str, cookie_path: str) -> bool:
    """Whether a page at `path` is sent cookies of `cookie_path`."""
    if not path.startswith(cookie_path):
        return False
    return len(path) == len(cookie_path) or cookie_path.endswith("/") or path[len(cookie_path)] == "/"

"""A cookie jar: what sites have set, and what is sent back to them. Values in, values out; nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import attrgetter
from urllib.parse import urlsplit

import msgspec

from shoal.core.clock import Moment
from shoal.core.cookies.cookie import Cookie, parse_cookie, path_matches
from shoal.core.site_key import registrable_domain

MOST_OF_OWNER = 180
"""Cookies of one registrable domain."""
MOST_IN_JAR = 3000


class CookieJar:
    """The cookies that belong together. Bounded: of one registrable domain, and of all, the oldest go first."""

    __slots__ = ("_by_owner", "_size")

    def __init__(self, cookies: Iterable[Cookie] = ()) -> None:
        self._by_owner: dict[str, dict[tuple[str, str, str], Cookie]] = {}
        self._size = 0
        self.merge(cookies)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Cookie]:
        return (cookie for kept in self._by_owner.values() for cookie in kept.values())

    def take(self, headers: Iterable[str], url: str, now: Moment) -> list[Cookie]:
        """Keep what the Set-Cookie fields of an answer from `url` say. Answers what has changed by that."""
        changed = []
        for header in headers:
            cookie = parse_cookie(header, url, now)
            if cookie is None:
                continue
            kept = self._by_owner.get(_owner(cookie.domain), {})
            before = kept.get(cookie.key)
            if before is not None:
                cookie = msgspec.structs.replace(cookie, created_at=before.created_at)
            if cookie == before or (before is None and cookie.is_over(now)) or _is_shadowed(cookie, url, kept):
                continue
            self.merge((cookie,), now)
            changed.append(cookie)
        return changed

    def merge(self, cookies: Iterable[Cookie], now: Moment = 0) -> None:
        """Each takes the place of the one with its key; one that has expired by `now` only takes it away."""
        for cookie in cookies:
            owner = _owner(cookie.domain)
            kept = self._by_owner.setdefault(owner, {})
            self._size -= kept.pop(cookie.key, None) is not None
            if not cookie.is_over(now):
                kept[cookie.key] = cookie
                self._size += 1
            if len(kept) > MOST_OF_OWNER:
                self._forget(owner)
            if self._size > MOST_IN_JAR:
                self._forget(next(iter(self._by_owner)))
            if not kept:
                self._by_owner.pop(owner, None)

    def header(self, url: str, now: Moment, without: frozenset[str] = frozenset()) -> str:
        """The Cookie field of a request for `url`, as in `a=1; b=2`; empty = there is none. `without`: these names."""
        sent = [cookie for cookie in self.of(url, now) if cookie.name not in without]
        return "; ".join([f"{cookie.name}={cookie.value}" if cookie.name else cookie.value for cookie in sent])

    def of(self, url: str, now: Moment) -> list[Cookie]:
        """The cookies that belong to a request for `url`, those of longer paths first, then those set first."""
        if not self._by_owner:
            return []
        parts = urlsplit(url)
        host, path, is_secure = parts.hostname or "", parts.path or "/", parts.scheme == "https"
        found = [
            cookie
            for cookie in self._by_owner.get(_owner(host), {}).values()
            if (host == cookie.domain or (not cookie.host_only and host.endswith(f".{cookie.domain}")))
            and path_matches(path, cookie.path)
            and (is_secure or not cookie.secure)
            and not cookie.is_over(now)
        ]
        found.sort(key=lambda cookie: (-len(cookie.path), cookie.created_at))
        return found

    def _forget(self, owner: str) -> None:
        kept = self._by_owner[owner]
        del kept[min(kept.values(), key=attrgetter("created_at")).key]
        self._size -= 1
        if not kept:
            del self._by_owner[owner]


@lru_cache(maxsize=1024)
def _owner(host: str) -> str:
    """Whose cookies are counted together: nobody can have more by having many hosts."""
    return registrable_domain(host) or host


def _is_shadowed(cookie: Cookie, url: str, kept: dict[tuple[str, str, str], Cookie]) -> bool:
    """What came over plain HTTP does not touch a Secure cookie of that name that the same pages would get."""
    return not url.startswith("https:") and any(
        other.secure
        and other.name == cookie.name
        and path_matches(cookie.path, other.path)
        and (f".{cookie.domain}".endswith(f".{other.domain}") or other.domain.endswith(f".{cookie.domain}"))
        for other in kept.values()
    )

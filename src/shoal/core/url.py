"""URLs as values: one spelling for each address, and what is read off it. Pure; nothing here touches the network.

A *normalised* URL is absolute, http or https, spelled as the WHATWG URL standard spells it (lower-case host, no default
port, no dot segments), without fragment, with percent-escapes in one spelling. The order of the query is kept: it can
matter to the server. Everything in Shoal that compares URLs compares normalised ones.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING

from ada_url import join_url, normalize_url

from shoal.core.storable import HALF, MAX_HOST_LABEL, MAX_URL, host_problem
from shoal.errors import BadURL

if TYPE_CHECKING:
    from collections.abc import Iterable

UNFOLLOWED = frozenset({"about", "blob", "data", "javascript", "mailto", "sms", "tel"})
"""Schemes of links that are no mistake of their page, and yet nothing to fetch."""

_CONTROL = re.compile(r"[\x00-\x20\x7f]")
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):")
_WEB = re.compile(r"https?://[^/\\?#]", re.IGNORECASE)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_STRAY_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PLAIN = re.compile(
    r"(?:/(?!/)|(?=[A-Za-z0-9_~-]))"  # from the root of the site, or from the folder of the page
    r"[A-Za-z0-9._~/-]*"
    r"(?:\?[A-Za-z0-9._~/=&+;:@,-]*)?"
).fullmatch
"""References that need no parser: joined as they are, they give a normalised URL (unless they contain `/.`)."""


class NormalURL(str):
    """A string that is known to be a normalised URL, so that nobody needs to normalise it again."""

    __slots__ = ()


def normalise(url: str) -> str:
    """The one spelling of an absolute URL. Space around it is ignored; credentials in it are kept.

    Raises BadURL with a short reason, and nothing else. `normalise(normalise(u)) == normalise(u)`.
    """
    asked = url
    url = url.strip()
    if len(url) > MAX_URL:
        raise BadURL(asked, _too_long(url))
    if control := _CONTROL.search(url):
        raise BadURL(asked, "it contains a space" if control[0] == " " else "it contains a control character")
    if not _WEB.match(url):
        raise BadURL(asked, _why_not_web(url))
    try:
        return _finish(normalize_url(url), asked)
    except ValueError:
        raise BadURL(asked, _why_unreadable(url)) from None


def join(base: str, href: str) -> str:
    """The normalised URL that `href` means on the page at `base`. For many of one page, keep a `Resolver`."""
    return Resolver(base).join(href)


class Resolver:
    """Resolves what the links of one page say, as a browser would: a space inside becomes %20, a line break vanishes.

    Raises BadURL if `base` is no URL of the web.
    """

    __slots__ = ("_base", "_folder", "_origin", "_root")

    def __init__(self, base: str) -> None:
        self._base = base if type(base) is NormalURL else normalise(base)
        start = self._base.index("/", 8)
        path = self._base.partition("?")[0]
        self._origin = self._base[:start]
        self._root = self._base[: start + 1]
        self._folder = path[: path.rindex("/") + 1]

    def join(self, href: str) -> str:
        """The normalised URL of a reference. Raises BadURL with a short reason, and nothing else."""
        if "/." not in href:
            if _PLAIN(href):
                url = (self._origin if href[0] == "/" else self._folder) + href
                if len(url) <= MAX_URL:
                    return url
            elif href.startswith(self._root) and len(href) <= MAX_URL and _PLAIN(href, len(self._origin)):
                return href
        if len(href) > MAX_URL:
            raise BadURL(href, _too_long(href))
        try:
            url = join_url(self._base, href)
        except ValueError:
            raise BadURL(href, _why_unreadable(href)) from None
        return _finish(url, href)

    def join_all(self, hrefs: Iterable[str]) -> tuple[list[str], list[tuple[str, str]]]:
        """The addresses that links point at, each once and in order; and (href, reason) of those that are broken.

        Links that lead nowhere by intent (empty, `#top`, `javascript:`, `mailto:`, …) are in neither.
        """
        found: dict[str, None] = {}
        broken: list[tuple[str, str]] = []
        for href in hrefs:
            if _PLAIN(href) and "/." not in href:
                url = (self._origin if href[0] == "/" else self._folder) + href
                if len(url) <= MAX_URL:
                    found[url] = None
                    continue
            href = href.strip()  # noqa: PLW2901 - the same link, read as a browser reads it
            if not href or href[0] == "#":
                continue
            try:
                found[self.join(href)] = None
            except BadURL as error:
                if scheme_of(href) not in UNFOLLOWED:
                    broken.append((href, error.reason))
        return list(found), broken


def scheme_of(reference: str) -> str | None:
    """The scheme that a reference names, in lower case; None if it names none."""
    found = _SCHEME.match(reference)
    return found[1].lower() if found else None


def site_of(url: str) -> str:
    """What politeness is keyed by: the host of a normalised URL, with `:port` unless it is the scheme's default.

    A dot at the end of a host, which only says that nothing is to be added to it, is left away.
    """
    start = 8 if url[4] == "s" else 7
    end = url.find("/", start)
    site = url[start:end] if end > 0 else url[start:]
    if "@" in site:
        site = site.rpartition("@")[2]
    return site.removesuffix(".").replace(".:", ":") if site[-1] == "." or ".:" in site else site


def host_of(url: str) -> str:
    """The host of a normalised URL, without port; an IPv6 address keeps its brackets."""
    site = site_of(url)
    if ":" not in site or site[-1] == "]":
        return site
    return site.rpartition(":")[0]


def same_site(one: str, other: str) -> bool:
    """Whether two normalised URLs share a politeness clock."""
    return site_of(one) == site_of(other)


def without_credentials(url: str) -> str:
    """A normalised URL without `user:password@`: what may be shown, logged and compared."""
    if "@" not in url:
        return url
    start = url.index("//") + 2
    end = url.find("/", start)
    at = url.rfind("@", start, end if end > 0 else None)
    return url if at < 0 else url[:start] + url[at + 1 :]


def dedup_key(url: str, method: str = "GET", body: bytes | None = None) -> bytes:
    """What a request is deduplicated by: 32 bytes, for a plain GET the SHA-256 of its normalised URL.

    Credentials count: who asks as somebody may be answered something else. Requests that differ in method or body have
    different keys.
    """
    if method == "GET" and body is None:
        return sha256(url.encode()).digest()
    return sha256(b"%b %b\n%b" % (method.encode(), url.encode(), body or b"")).digest()


def _finish(url: str, asked: str) -> str:
    """From what the parser gave to what Shoal compares."""
    if not url.startswith(("http://", "https://")):
        raise BadURL(asked, _why_not_web(url))
    if "#" in url:
        url = url[: url.index("#")]
    if "%" in url and not _STRAY_PERCENT.search(url):
        # With a stray percent sign about, decoding could build escapes that were not there before: left alone.
        url = _ESCAPE.sub(_one_spelling, url)
    if len(url) > MAX_URL:
        raise BadURL(asked, _too_long(url))
    problem = host_problem(host_of(url)) if len(url) > MAX_HOST_LABEL else None
    if problem is not None:
        raise BadURL(asked, problem)
    return url


def _one_spelling(escape: re.Match[str]) -> str:
    char = chr(int(escape[1], 16))
    return char if char in _UNRESERVED else escape[0].upper()


def _too_long(url: str) -> str:
    return f"it is {len(url)} characters long and {MAX_URL} is the limit"


def _why_unreadable(url: str) -> str:
    if any("\ud800" <= char <= "\udfff" for char in url):
        return HALF
    return "its host or port is not valid"


def _why_not_web(url: str) -> str:
    if not url:
        return "it is empty"
    scheme = scheme_of(url)
    if scheme in ("http", "https"):
        return "it has no host"
    if scheme is None or url[len(scheme) + 1 : len(scheme) + 2].isdigit():  # example.org:8080 has a port, not a scheme
        return "it does not begin with http:// or https://"
    return f"its scheme {scheme[:20]!r} is not http or https"

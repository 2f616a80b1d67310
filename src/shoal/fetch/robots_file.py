"""What a robots.txt says to one crawler: the format of RFC 9309, read to the letter. Pure.

Lines that cannot be read are passed over, and those around them hold. Records that the RFC does not know (Sitemap,
Crawl-delay, anything) never end a group. Crawl-delay is read as everybody writes it: for the agents right before it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_BYTES = 500 * 1024
"""What comes after this many bytes of a robots.txt is not read."""

_BOM = b"\xef\xbb\xbf"
_LINE_END = re.compile(r"\r\n|\r|\n")
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_COMPATIBLE = re.compile(r"Mozilla/[0-9.]+ \(compatible; ([A-Za-z0-9_-]+)", re.IGNORECASE)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_TO_ESCAPE = re.compile(r"[^A-Za-z0-9._~:/?\[\]@!&'()*+,;=$%-]|%(?![0-9A-F]{2})")
_AS_IT_IS = re.compile(r"[A-Za-z0-9._~:/?\[\]@!&'()+,;=-]*").fullmatch
_DECODED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:[]@!&'()+,;=")
"""What is the same with and without an escape. Never among them: what means something in a pattern (`*`, `$`)."""

_NAMES = {
    "user-agent": "user-agent",
    "useragent": "user-agent",
    "user agent": "user-agent",
    "allow": "allow",
    "disallow": "disallow",
    "dissallow": "disallow",
    "dissalow": "disallow",
    "disalow": "disallow",
    "diasllow": "disallow",
    "disallaw": "disallow",
    "sitemap": "sitemap",
    "site-map": "sitemap",
    "crawl-delay": "crawl-delay",
    "crawl delay": "crawl-delay",
}
"""Records that mean something here, with the misspellings of "Disallow" that sites are known to have."""


def product_token(user_agent: str) -> str:
    """The name that a robots.txt calls a crawler by: the first word of its User-Agent, without the version.

    Of `Mozilla/5.0 (compatible; Somebot/1.0)` it is the word that follows. Empty = it has none.
    """
    disguised = _COMPATIBLE.match(user_agent)
    if disguised is not None:
        return disguised[1].lower()
    found = _TOKEN.match(user_agent.strip())
    return found.group().lower() if found is not None else ""


class RobotsFile:
    """The rules of one robots.txt for the crawler with this product token: those of all groups that name it, together;
    if none does, those of all groups for `*`; if there are none, none.

    `crawl_delay`: seconds; None = it asks for none. `sitemaps`: as they are written.
    """

    __slots__ = ("_prefixes", "_rules", "_wild", "crawl_delay", "sitemaps")

    def __init__(self, body: bytes, token: str) -> None:
        ours, everyone = _Group(), _Group()
        self.sitemaps = _read(_beginning(body), token.lower(), ours, everyone)
        group = ours if ours.named else everyone
        self.crawl_delay = group.crawl_delay
        rules = {(pattern, allow) for pattern, allow in group.rules if pattern}
        self._rules = [_Rule.of(*rule) for rule in sorted(rules, key=_specificity)]
        self._prefixes = tuple(rule.parts[0] for rule in self._rules if rule.is_prefix)
        self._wild = [rule for rule in self._rules if not rule.is_prefix]

    def allows(self, target: str) -> bool:
        """Whether this path (with its query) may be fetched: as the longest rule says that matches, else yes.

        Of two that are as long, the one that allows counts. /robots.txt may always be fetched.
        """
        place = comparable(target)
        for rule in self._rules if place.startswith(self._prefixes) else self._wild:
            if rule.matches(place):
                return rule.allow or _is_robots(place)
        return True


class _Group:
    """What the groups say that are meant for the same agent. `named`: there is one at all."""

    __slots__ = ("crawl_delay", "named", "rules")

    def __init__(self) -> None:
        self.named = False
        self.rules: list[tuple[str, bool]] = []
        self.crawl_delay: float | None = None


class _Rule(NamedTuple):
    """`parts`: what stands between the stars. `ends`: nothing may follow."""

    parts: tuple[str, ...]
    ends: bool
    allow: bool

    @classmethod
    def of(cls, pattern: str, allow: bool) -> _Rule:
        ends = pattern.endswith("$")
        return cls(tuple(re.sub(r"\*+", "*", pattern.removesuffix("$")).split("*")), ends, allow)

    @property
    def is_prefix(self) -> bool:
        return len(self.parts) == 1 and not self.ends

    def matches(self, place: str) -> bool:
        """Each part as early as possible, the last one at the end where it has to be. Never goes back: no pattern can
        take longer than reading the place once."""
        first, *others = self.parts
        if not place.startswith(first):
            return False
        if not others:
            return not self.ends or place == first
        *between, last = others
        position = len(first)
        for part in between:
            found = place.find(part, position)
            if found < 0:
                return False
            position = found + len(part)
        if self.ends:
            return len(place) - len(last) >= position and place.endswith(last)
        return place.find(last, position) >= 0


def comparable(target: str) -> str:
    """A path with its query as it is compared: one spelling for each octet, whether it was escaped or not.

    A slash and a question mark that are escaped in the path are not those that divide it, and stay escaped.
    """
    return target if _AS_IT_IS(target) else _one_spelling(target, pattern=False)


def _one_spelling(text: str, *, pattern: bool) -> str:
    path, mark, query = text.partition("?")
    return _spelled(path, "", pattern) + (mark + _spelled(query, "/?", pattern) if mark else "")


def _spelled(text: str, also: str, pattern: bool) -> str:
    if not pattern:
        text = text.replace("*", "%2A").replace("$", "%24")

    def unescaped(found: re.Match[str]) -> str:
        char = chr(int(found[1], 16))
        return char if char in _DECODED or char in also else f"%{found[1].upper()}"

    return _TO_ESCAPE.sub(_escaped, _ESCAPE.sub(unescaped, text))


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{octet:02X}" for octet in found.group().encode("utf-8", "surrogateescape"))


def _as_pattern(value: str) -> str:
    """A rule's path in the spelling of `comparable`; `$` means the end where it is last, and itself elsewhere."""
    end = "$" if value.endswith("$") else ""
    body = value.removesuffix("$").replace("$", "%24")
    return _one_spelling(body, pattern=True) + end


def _specificity(rule: tuple[str, bool]) -> tuple[int, bool, str]:
    pattern, allow = rule
    return -len(pattern), not allow, pattern


def _is_robots(place: str) -> bool:
    return place.partition("?")[0] == "/robots.txt"


def _beginning(body: bytes) -> str:
    """As much as is read of it. Bytes that are no UTF-8 stay what they are: they can be part of a path."""
    if len(body) > MAX_BYTES:
        # Half a line could forbid more than the whole one.
        body = body[:MAX_BYTES]
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    return body.removeprefix(_BOM).decode("utf-8", "surrogateescape")


def _read(text: str, token: str, ours: _Group, everyone: _Group) -> tuple[str, ...]:
    """Fill the groups. Answers the sitemaps, which belong to none."""
    sitemaps: list[str] = []
    current: list[_Group] = []
    just_named: list[_Group] = []
    naming = paced = False
    for name, value in _records(text):
        match name:
            case "user-agent":
                if not naming:
                    current = []
                if not naming or paced:
                    just_named = []
                naming, paced = True, False
                group = everyone if value.split(None, 1)[:1] == ["*"] else ours if _names(value, token) else None
                if group is not None:
                    group.named = True
                    current.append(group)
                    just_named.append(group)
            case "allow" | "disallow":
                naming = False
                for group in current:
                    group.rules.append((_as_pattern(value), name == "allow"))
            case "crawl-delay":
                paced = True
                for group in just_named if naming else current:
                    group.crawl_delay = _slower(group.crawl_delay, value)
            case "sitemap":
                if value:
                    sitemaps.append(value.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    return tuple(sitemaps)


def _records(text: str) -> Iterator[tuple[str, str]]:
    for line in _LINE_END.split(text):
        said = line.partition("#")[0].strip(" \t")
        name, colon, value = said.partition(":")
        known = _NAMES.get(name.strip(" \t").lower())
        if known is None:  # some leave the colon away
            name, colon, value = said.partition(" ")
            known = _NAMES.get(name.lower())
        if known is not None and (colon or not value):
            yield known, value.strip(" \t")


def _names(value: str, token: str) -> bool:
    """Whether a user-agent line means the crawler: by its whole token, small and capital letters alike."""
    found = _TOKEN.match(value)
    return found is not None and found.group().lower() == token


def _slower(known: float | None, value: str) -> float | None:
    """The longer of two delays; what is no number of seconds above 0 is none."""
    try:
        seconds = float(value)
    except ValueError:
        return known
    return max(seconds, known or 0.0) if math.isfinite(seconds) and seconds > 0 else known

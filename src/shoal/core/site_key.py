"""What politeness is keyed by: the host of a URL, its registrable domain, or a name that a rule gives to its host."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from shoal.core.host_pattern import host_test
from shoal.core.url import host_of, site_of

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

HOSTS_REMEMBERED = 10_000
"""For so many hosts it is remembered what site they are of."""

_ADDRESS = re.compile(r"\[.*\]|[0-9.]+")
_NAME = re.compile(r"[^\s/?#@\\\x00-\x1f]{1,200}")


class SiteKeyRules(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the sites of a run are keyed, as it is stored with the run.

    `named`: pairs of a host, as routes write it, and the name of the site it is of; the first that fits decides.
    `domain`: all other hosts are keyed by their registrable domain; False = each by itself.
    """

    domain: bool = False
    named: tuple[tuple[str, str], ...] = ()


class SiteKeys:
    """The keys that such rules give to URLs. `remembered`: for so many hosts they are known by heart."""

    def __init__(self, rules: SiteKeyRules, remembered: int = HOSTS_REMEMBERED) -> None:
        self._remembered = remembered
        self._domain = rules.domain
        self._named = [(host_test(host), name) for host, name in rules.named]
        self._known: dict[str, str] = {}
        if rules.domain:
            _suffixes()  # here, and not when the first URL comes by, in the middle of an event loop

    def of(self, url: str) -> str:
        """The site of a normalised URL."""
        host = site_of(url)
        key = self._known.get(host)
        if key is None:
            if len(self._known) >= self._remembered:
                self._known.clear()
            key = self._known[host] = self._key(host, url)
        return key

    def _key(self, host: str, url: str) -> str:
        for is_of, name in self._named:
            if is_of is None or is_of(host):
                return name
        return (registrable_domain(host_of(url)) or host) if self._domain else host


def site_by(rules: SiteKeyRules | None, url: str) -> str:
    """The site of a normalised URL in a run that was stored with these rules; None = each host is a site."""
    return site_of(url) if rules is None else SiteKeys(rules).of(url)


def is_site_name(text: object) -> bool:
    """Whether a rule may call a site so: one word, without what ends the host of a URL."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def registrable_domain(host: str) -> str | None:
    """What somebody registered: `shop.example.co.uk` is of `example.co.uk`, by the Public Suffix List.

    Its private part counts, so that `one.github.io` and `two.github.io` are of two people. A host that is a public
    suffix itself is its own. None = it has none: an IP address, or a name without a dot.
    """
    name = host.removesuffix(".")
    if "." not in name or _ADDRESS.fullmatch(name):
        return None
    found = _suffixes().privatesuffix(name)
    return name if found is None else str(found)


def is_public_suffix(host: str) -> bool:
    """Whether nobody in particular is behind it, as with `co.uk` and `github.io`. No IP address is one."""
    name = host.removesuffix(".")
    return not _ADDRESS.fullmatch(name) and _suffixes().publicsuffix(name) == name


@cache
def _suffixes() -> PublicSuffixList:
    """Read when it is first needed: it takes a tenth of a second, and most scrapers never ask."""
    from publicsuffixlist import PublicSuffixList  # noqa: PLC0415 - see above

    return PublicSuffixList()

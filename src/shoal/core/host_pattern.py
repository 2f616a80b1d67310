"""Host names as rules write them: a name with its subdomains, or a pattern with `*`; with or without a port."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable

from shoal.core.url import host_of


def is_host_pattern(text: object) -> bool:
    """Whether a rule may name its hosts so."""
    return isinstance(text, str) and re.fullmatch(r"[^\s/?#@\\]+", text.replace("?", "x")) is not None


def host_test(host: str | None) -> Callable[[str], bool] | None:
    """Whether a host (with `:port`, as URLs have it) is one that a rule names. None = any is."""
    if host is None or host == "*":
        return None
    name = host.lower()
    with_port = re.search(r":[0-9]+$", name) is not None
    if "*" in name or "?" in name:
        whole = re.compile(fnmatch.translate(name)).match
        return lambda place: whole(place if with_port else _bare(place)) is not None
    below = f".{name}"

    def belongs(place: str) -> bool:
        bare = place if with_port else _bare(place)
        return bare == name or bare.endswith(below)

    return belongs


def _bare(place: str) -> str:
    return host_of(f"http://{place}/")

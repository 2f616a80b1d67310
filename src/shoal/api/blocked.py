"""Block detection: statuses, and words in pages, that say a site has had enough of us although it answers no 429."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

LOOKED_AT = 65_536
"""Only the beginning of a page is searched: a page that says "no" says it early."""


@dataclass(frozen=True, slots=True)
class Blocked:
    """`statuses` that mean it, and `patterns` (regular expressions, small and capital letters alike) in pages."""

    statuses: frozenset[int] = frozenset()
    patterns: tuple[re.Pattern[bytes], ...] = ()

    @classmethod
    def of(cls, entries: Iterable[int | str]) -> Blocked:
        """Numbers are statuses, texts are patterns. Raises ValueError with a phrase that says what is wrong."""
        statuses, patterns = set(), []
        for entry in entries:
            if isinstance(entry, int) and not isinstance(entry, bool):
                if not 100 <= entry <= 599:
                    raise ValueError(f"{entry} is not an HTTP status")
                statuses.add(entry)
            elif isinstance(entry, str) and entry:
                try:
                    patterns.append(re.compile(entry.encode(), re.IGNORECASE))
                except re.error as error:
                    raise ValueError(f"{entry!r} is not a regular expression ({error})") from None
            else:
                raise ValueError(f"{entry!r} is neither an HTTP status nor a pattern")
        return cls(frozenset(statuses), tuple(patterns))

    def found_in(self, body: bytes) -> str | None:
        """The pattern that the page matches, if any does."""
        if not self.patterns:
            return None
        head = body[:LOOKED_AT]
        return next((p.pattern.decode() for p in self.patterns if p.search(head)), None)


NOT_BLOCKED = Blocked()

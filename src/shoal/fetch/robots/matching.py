"""Matching a path against the rules of a robots.txt: the most specific rule wins, and no file makes it slow. Pure.

A file of 500 KiB may hold fifty thousand rules, and every URL of its site is compared with them in the event loop. So
rules are found by what a URL has, not tried one after the other: plain prefixes by their text, rules with `*` by a rare
piece of text that they cannot match without. What is left to try is bounded.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final, NamedTuple

NOTHING: Final = 1
"""What `find` answers where no rule matches: everything is allowed."""

MOST_TRIED: Final = 4_000
"""Rules with `*` that are tried for one URL before it is taken to be forbidden."""

MOST_READ: Final = 4_000_000
"""Characters that are read in doing so."""

_FORBIDDEN: Final = 1 << 62
_PIECE: Final = 4
_PIECES: Final = 32
_STARS = re.compile(r"\*+")


class _Wildcard(NamedTuple):
    """A rule with `*` or `$`. `rank`: see `find`. `parts`: what stands between stars. `ends`: nothing may follow."""

    rank: int
    parts: tuple[str, ...]
    ends: bool

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


class RuleIndex:
    """The rules of one group: pairs of a pattern and whether it allows. An empty pattern says nothing."""

    __slots__ = ("_anywhere", "_by_piece", "_lengths", "_piece_sizes", "_prefixes")

    def __init__(self, rules: Iterable[tuple[str, bool]]) -> None:
        self._prefixes: dict[str, int] = {}
        wildcards: list[_Wildcard] = []
        for pattern, allow in rules:
            if not pattern:
                continue
            rank = len(pattern) * 2 + allow
            ends = pattern.endswith("$")
            parts = tuple(_STARS.sub("*", pattern.removesuffix("$")).split("*"))
            if len(parts) == 1 and not ends:
                self._prefixes[pattern] = max(rank, self._prefixes.get(pattern, 0))
            else:
                wildcards.append(_Wildcard(rank, parts, ends))
        self._lengths = sorted({len(prefix) for prefix in self._prefixes}, reverse=True)
        self._index(sorted(wildcards, reverse=True))

    def _index(self, wildcards: list[_Wildcard]) -> None:
        """Each rule under that piece of its text which the fewest others have."""
        pieces = [_pieces(rule) for rule in wildcards]
        often = Counter(piece for found in pieces for piece in found)
        by_piece: defaultdict[str, list[_Wildcard]] = defaultdict(list)
        self._anywhere: list[_Wildcard] = []
        for rule, found in zip(wildcards, pieces, strict=True):
            if found:
                by_piece[min(found, key=lambda piece: (often[piece], piece))].append(rule)
            else:
                self._anywhere.append(rule)
        self._by_piece = dict(by_piece)
        self._piece_sizes = sorted({len(piece) for piece in by_piece})

    def find(self, place: str) -> int:
        """The rank of the most specific rule that matches: twice its length, and one more if it allows. So the longest
        has the highest, of two as long the one that allows, and the last bit says what holds. NOTHING = none does."""
        starts = (place[:length] for length in self._lengths if length <= len(place))
        best = next((self._prefixes[start] for start in starts if start in self._prefixes), NOTHING)
        if not self._by_piece and not self._anywhere:
            return best
        tried = 0
        most = min(MOST_TRIED, MOST_READ // (len(place) + 1))
        for rule in self._possible(place):
            if rule.rank <= best:
                continue
            if tried == most:
                return _FORBIDDEN
            tried += 1
            if rule.matches(place):
                best = rule.rank
        return best

    def _possible(self, place: str) -> Iterable[_Wildcard]:
        yield from self._anywhere
        by_piece = self._by_piece
        for size in self._piece_sizes:
            here = {place[at : at + size] for at in range(len(place) - size + 1)}
            for piece in here & by_piece.keys():
                yield from by_piece[piece]


def _pieces(rule: _Wildcard) -> set[str]:
    """Some pieces of text without which the rule matches nothing: of its longest part, four characters each if it has
    as many."""
    part = max(rule.parts, key=len)
    size = min(_PIECE, len(part))
    return {part[at : at + size] for at in range(min(len(part) - size + 1, _PIECES))} if size else set()

"""Links that a run is known to have already, so that they need not be sent to the store once more."""

from __future__ import annotations

from collections.abc import Collection

HALF = 50_000
"""URLs per generation. Two generations are held, over all runs together."""


class RecentLinks:
    """A bounded memory of what the store has accepted. It forgets; it never claims what is not so."""

    def __init__(self, half: int = HALF) -> None:
        self._half = half
        self._young: dict[str, set[str]] = {}
        self._old: dict[str, set[str]] = {}
        self._count = 0

    def of(self, run_id: str) -> tuple[set[str], set[str]]:
        """The URLs of this run that are known to be in the store (as pages, by GET)."""
        return self._young.get(run_id, _NONE), self._old.get(run_id, _NONE)

    def add(self, run_id: str, urls: Collection[str]) -> None:
        """Remember URLs that the store has acknowledged for this run."""
        if not urls:
            return
        known = self._young.setdefault(run_id, set())
        before = len(known)
        known.update(urls)
        self._count += len(known) - before
        if self._count >= self._half:
            self._old, self._young, self._count = self._young, {}, 0


_NONE: set[str] = set()

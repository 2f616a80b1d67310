"""A cache of links that a run is known to have already, so that they are not sent to the store once more."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from shoal.core.outcome import Done, Settlement
from shoal.core.task import Kind

HALF = 50_000
"""URLs per generation. Two generations are held, over all runs together."""


class KnownLinks:
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

    def settled(self, stood: Iterable[Settlement]) -> None:
        """Remember what the store has accepted with these settlements."""
        for settlement in stood:
            if isinstance(settlement.outcome, Done) and settlement.outcome.tasks:
                self.add(settlement.run_id, _plain_pages(settlement.outcome))


def _plain_pages(done: Done) -> list[str]:
    return [
        task.url
        for task in done.tasks
        if task.key is not None and task.extra.method == "GET" and task.extra.kind is Kind.PAGE
    ]


_NONE: set[str] = set()

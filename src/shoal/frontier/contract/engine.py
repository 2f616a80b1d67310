"""A store with all its protocols."""

from __future__ import annotations

from typing import Protocol

from shoal.frontier.contract.cache import Cache
from shoal.frontier.contract.exits import Exits
from shoal.frontier.contract.frontier import Frontier
from shoal.frontier.contract.reader import Reader


class Engine(Protocol):
    """A store, opened: all protocols on one connection."""

    @property
    def frontier(self) -> Frontier: ...

    @property
    def reader(self) -> Reader: ...

    @property
    def cache(self) -> Cache: ...

    @property
    def exits(self) -> Exits: ...

    @property
    def shares_clock(self) -> bool:
        """True if the store's clock is this machine's (so that `claimed_at` can be compared with local time)."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let go. The second time: nothing."""
        ...

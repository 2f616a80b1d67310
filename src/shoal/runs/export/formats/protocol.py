"""The seam between an export and the forms that it can have: a writer for each."""

from __future__ import annotations

from typing import Protocol

from shoal.frontier.contract.reader import Item


class ItemWriter(Protocol):
    """Writes items to the stream that it was made with. It does not close the stream."""

    def add(self, item: Item) -> None: ...

    def flush(self) -> None:
        """Give the stream all that was added so far, where the form allows it."""
        ...

    def close(self) -> None:
        """Write what ends the file."""
        ...

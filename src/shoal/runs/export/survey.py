"""A first look at all items: which columns there are, and what is in them. Tables need to know before they begin."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from shoal.frontier.contract.reader import Item
from shoal.runs.export.records import ColumnKind, Columns, common_kind, kind_of, record_of

ItemSource = Callable[[], AsyncIterator[Item]]
"""Begins to read the items from the first one, each time it is called."""


@dataclass(frozen=True, slots=True)
class Survey:
    """The columns in order of first appearance, or as chosen. `count`: the items that were seen; None = all count."""

    kinds: Mapping[str, ColumnKind]
    count: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.kinds)


async def survey(source: ItemSource, chosen: Columns | None) -> Survey:
    """Look at everything that is there now. Who writes afterwards stops after `count`: what came since is unknown."""
    kinds: dict[str, ColumnKind | None] = dict.fromkeys(chosen or ())
    count = 0
    async for item in source():
        for name, value in record_of(item, chosen).items():
            kinds[name] = common_kind(kinds.get(name), kind_of(value))
        count += 1
    return Survey({name: kind or ColumnKind.TEXT for name, kind in kinds.items()}, count)


def as_chosen(columns: Columns) -> Survey:
    """The same without looking, where columns are chosen: anything may be in them."""
    return Survey(dict.fromkeys(columns, ColumnKind.TEXT))

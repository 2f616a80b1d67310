"""Pages of items that are bounded in bytes, from a store that counts items."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from shoal.frontier.contract.reader import Item, ItemPage

AT_FIRST = 100
"""Items that are asked for before it is known how large they are."""


async def bounded_page(
    read: Callable[[str, int, int], Awaitable[ItemPage]], job_id: str, cursor: int, limit: int, most: int
) -> ItemPage:
    """About `limit` items after `cursor`, or as many as make `most` bytes. At least what the store gives at once."""
    items: list[Item] = []
    size = 0
    step = min(limit, AT_FIRST)
    while step > 0:
        page = await read(job_id, cursor, step)
        if page.cursor is None or not page.items:
            return ItemPage(items, cursor if items else page.cursor)
        items += page.items
        cursor = page.cursor
        size += sum(len(bytes(item.body)) + len(item.url) for item in page.items)
        step = min(limit - len(items), (most - size) * len(items) // max(size, 1))
    return ItemPage(items, cursor)

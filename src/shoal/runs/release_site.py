"""A site that is held back, by rate limits or because it was found to be down, is let go by hand."""

from __future__ import annotations

from shoal.core.notes import Entry
from shoal.errors import UsageError
from shoal.frontier.contract.engine import Engine
from shoal.work.task.setbacks import down_key


async def release_site(engine: Engine, site: str) -> None:
    """Undo all that the site has done to itself: its next page may be fetched as soon as its pace allows.

    That it is down is forgotten first: whoever asks in between only finds out again. Raises UsageError if there is no
    such site.
    """
    keys = [down_key((site, slot.exit)) for slot in await engine.reader.slots(site)]
    known = await engine.cache.get(keys)
    if known:
        await engine.cache.put([Entry(key, value, 0) for key, value in known.items()])
    if not await engine.exits.release_site(site):
        raise UsageError(f"No task of the site {site!r} was ever accepted here. `shoal sites` lists those with work.")

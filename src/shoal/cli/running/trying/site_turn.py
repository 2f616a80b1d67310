"""Whether a site may be asked by the way: crawls of the store may have been told to wait, or have asked just now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cli.output.exit_codes import say
from shoal.cli.output.text import duration
from shoal.cli.running.find_store import is_absent
from shoal.core.task import DIRECT
from shoal.errors import EngineError, UsageError
from shoal.runs.open_store import opened

if TYPE_CHECKING:
    from shoal.config.settings import Settings
    from shoal.core.clock import Clock, Millis

PATIENCE: Millis = 60_000
"""Milliseconds that a person at a terminal waits for."""


async def wait_for_site(settings: Settings, site: str, url: str, clock: Clock) -> None:
    """Wait as long as the store of these settings says that the site is to be left alone, if it knows it.

    Raises UsageError if that is long. A store that is not there, or cannot be asked, has no say.
    """
    if is_absent(settings):
        return
    try:
        async with opened(settings, create=False) as store:
            record = await store.reader.site(site)
            if record is None:
                return
            slots = [slot for slot in await store.reader.slots(site) if slot.exit == DIRECT]
            until = max(record.blocked_until, *(max(slot.blocked_until, slot.next_at) for slot in slots), 0)
            wait = until - await store.reader.now()
            cause = next((slot.cause for slot in slots if slot.cause), record.cause)
    except EngineError:
        return
    if wait > PATIENCE:
        why = f" ({cause})" if cause else ""
        raise UsageError(
            f"{site} is to be left alone for another {duration(wait / 1000)}{why}: crawls of this store wait, too. "
            f"`shoal explain {url}` says more."
        )
    if wait > 0:
        if wait > 2000:
            say(f"Waiting {duration(wait / 1000)} for {site}, as crawls of this store do.")
        await clock.sleep(wait / 1000)

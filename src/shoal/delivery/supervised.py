"""A supervisor for background loops: one that fails is logged by its name, and run again after a pause.

So that an error in the background ends a process only where that was decided: by `fatal`, at the place that starts it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog

from shoal.core import log_events
from shoal.core.clock import Clock
from shoal.errors import Unstorable

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before a loop is run again; doubling with each failure."""

STEADY_AFTER = 60_000.0
"""Milliseconds after which a loop that fails again is taken to have been well in between."""

log = structlog.get_logger("shoal")


async def supervised(
    name: str, loop: Callable[[], Awaitable[None]], clock: Clock, fatal: type[Exception] | None = None
) -> None:
    """Run `loop` until it returns or is cancelled. `fatal`: what it raises of this kind is raised here as well, and so
    ends whoever waits for it; but not for a single value that a store refuses. Anything else is logged."""
    failures = 0
    while True:
        began = clock.elapsed()
        try:
            await loop()
        except Exception as error:
            if fatal is not None and isinstance(error, fatal) and not isinstance(error, Unstorable):
                raise
            failures = 1 if clock.elapsed() - began > STEADY_AFTER else failures + 1
            seconds = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures - 1, 20))
            log.exception(log_events.BACKGROUND_FAILED, loop=name, attempt=failures, next_try=f"in {seconds:.1f} s")
        else:
            return
        await clock.sleep(seconds)

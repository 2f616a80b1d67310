"""An event loop for callers that have none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

NAME_LOOKUPS = 64
"""Threads that the loop has for name lookups and the like, of which names get half. Of its own accord it would have
four: two names whose servers do not answer would hold up all others."""


def in_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end on the fastest loop there is."""
    try:
        import uvloop  # noqa: PLC0415 - not there on every platform
    except ImportError:
        return asyncio.run(work)
    os.environ.setdefault("UV_THREADPOOL_SIZE", str(NAME_LOOKUPS))  # read once, when the first of them is needed
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)

"""An event loop for callers that have none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
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


def in_loop_beside(work: Coroutine[Any, Any, Result]) -> Result:
    """The same where a loop may be running already, as in a notebook: then in a thread, which is waited for.

    Ctrl-C (a notebook's "interrupt") cancels the work, waits until it has put everything in order, and is raised.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return in_loop(work)
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def main() -> Result:
        begun.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    with ThreadPoolExecutor(1, "shoal-loop") as thread:
        ended = thread.submit(copy_context().run, in_loop, main())
        try:
            return ended.result()
        except KeyboardInterrupt:
            for loop, task in begun:
                if task is not None:
                    loop.call_soon_threadsafe(task.cancel)
            raise

"""Threads for handlers that block: the loop goes on meanwhile, and with it requests, renewals and Ctrl-C."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

MOST_THREADS = 32
"""Handlers that run in threads at once; further ones wait, their leases kept alive."""

T = TypeVar("T")


class HandlerThreads:
    """Each call has a thread of its own, which does not keep the process alive: a thread cannot be ended from outside,
    and one that blocks for ever must not hold up the end of the worker."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(MOST_THREADS)

    async def run(self, function: Callable[[], T]) -> tuple[T] | BaseException:
        """What the function answers, or what it raises: a coroutine cannot raise it all. Cancelled, this leaves the
        thread to itself, and its answer is thrown away."""
        async with self._free:
            loop = asyncio.get_running_loop()
            ended: asyncio.Future[tuple[T] | BaseException] = loop.create_future()
            context = contextvars.copy_context()

            def tell(how: tuple[T] | BaseException) -> None:
                if not ended.done():
                    ended.set_result(how)

            def work() -> None:
                how: tuple[T] | BaseException
                try:
                    how = (context.run(function),)
                except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                    how = error
                with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
                    loop.call_soon_threadsafe(tell, how)

            threading.Thread(target=work, name="handler", daemon=True).start()
            return await ended

"""Threads for the starts of scrapers, which may hang."""

from __future__ import annotations

import asyncio
import threading

import pytest

from shoal.core.clock import SystemClock
from shoal.gateway.jobs.start_threads import StartThreads, TooBusy
from support.waiting import until


class TestStartThreads:
    async def test_what_is_raised_comes_through(self) -> None:
        threads = StartThreads(SystemClock(), 1)
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda _: 1 // 0, 5)
        assert await threads.run(lambda _: 7, 5) == 7
        threads.close()

    async def test_work_that_hangs_is_left_behind(self) -> None:
        threads, stop = StartThreads(SystemClock(), 1, most_stuck=2), threading.Event()
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await threads.run(lambda _: stop.wait(), 0.05)
        with pytest.raises(TooBusy):
            await threads.run(lambda _: 7, 5)
        stop.set()
        await until(lambda: not threads._stuck, "all threads are free")
        assert await threads.run(lambda _: 7, 5) == 7
        assert threads._threads == 1
        threads.close()

    async def test_work_that_no_thread_has_time_for(self) -> None:
        threads, go, begun = StartThreads(SystemClock(), 1), threading.Event(), threading.Event()

        def long(_: object) -> bool:
            begun.set()
            return go.wait()

        first = asyncio.create_task(threads.run(long, 20))
        await until(begun.is_set, "the first has begun")
        with pytest.raises(TooBusy):
            await threads.run(lambda _: 7, 0.05)
        assert threads._stuck == 0
        go.set()
        assert await first is True
        assert await threads.run(lambda _: 8, 5) == 8
        threads.close()

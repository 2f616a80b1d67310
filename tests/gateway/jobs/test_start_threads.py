"""Threads for the starts of scrapers, which may hang."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial

import pytest

from shoal.core.clock import SystemClock
from shoal.gateway.jobs.start_threads import Share, StartThreads, TooBusy
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
        await until(lambda: not threads.stuck, "all threads are free")
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
        assert threads.stuck == 0
        go.set()
        assert await first is True
        assert await threads.run(lambda _: 8, 5) == 8
        threads.close()


class TestShares:
    async def test_a_client_that_has_nothing_at_work_does_not_wait_for_others(self) -> None:
        """Neither for those who bring much, nor for those whose work does not end."""
        threads, go = StartThreads(SystemClock()), threading.Event()
        begun: list[str] = []

        def long(name: str) -> Callable[[object], bool]:
            def wait(_: object) -> bool:
                begun.append(name)
                return go.wait()

            return wait

        names = [name for name in "abcd" for _ in range(6)]
        held = [asyncio.create_task(threads.run(long(name), 60, name)) for name in names]
        await until(lambda: len(begun) >= 4, "as many have begun as there are threads")
        assert await threads.run(lambda _: 7, 60, "modest") == 7
        assert Counter(begun) <= Counter("aabbccdd"), "two of each at most"
        go.set()
        assert await asyncio.gather(*held) == [True] * len(names)
        await until(lambda: threads._threads == 4, "those who came to help have left")
        threads.close()

    async def test_whoever_loses_threads_is_refused_and_nobody_else(self) -> None:
        threads, stop = StartThreads(SystemClock(), share=Share(stuck=2)), threading.Event()
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await threads.run(lambda _: stop.wait(), 0.05, "stuck")
        with pytest.raises(TooBusy):
            await threads.run(lambda _: 7, 60, "stuck")
        assert await threads.run(lambda _: 7, 60, "other") == 7
        stop.set()
        await until(lambda: not threads.stuck, "all threads are free")
        assert await threads.run(lambda _: 7, 60, "stuck") == 7
        threads.close()

    async def test_clients_take_turns(self) -> None:
        threads, go = StartThreads(SystemClock(), 1, share=Share(guests=0)), threading.Event()
        done: list[str] = []

        def note(name: str, _: object) -> None:
            done.append(name)

        first = asyncio.create_task(threads.run(lambda _: go.wait(), 60, "a"))
        await until(lambda: threads._at_work == 1, "the thread is busy")
        rest = [asyncio.create_task(threads.run(partial(note, name), 60, name)) for name in "aaabbc"]
        await until(lambda: len(threads._waiting) == 6, "all wait")
        go.set()
        await asyncio.gather(first, *rest)
        assert "".join(done) == "abcaba"
        threads.close()

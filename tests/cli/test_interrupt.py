"""Ctrl-C, by the clock: the first drains, an echo of it is none, the second forces."""

from __future__ import annotations

import asyncio
import signal

from shoal.cli.running.interrupt import interruptible
from shoal.cli.running.signal_watch import ECHO
from shoal.testing.jump_clock import JumpClock


async def test_an_echo_is_not_a_second_signal() -> None:
    clock, asked = JumpClock(), list[str]()
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        with interruptible(lambda: asked.append("drain"), lambda: asked.append("force"), clock) as interruption:
            for ahead, done in ((0, ["drain"]), (ECHO - 1, ["drain"]), (1, ["drain", "force"])):
                clock.advance(ahead)
                signal.raise_signal(signal.SIGTERM)
                await asyncio.sleep(0)
                assert (asked, interruption.times) == (done, len(done))
            assert interruption.forced
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


async def test_without_a_signal_everything_is_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interruptible(lambda: None, lambda: None, JumpClock()):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before

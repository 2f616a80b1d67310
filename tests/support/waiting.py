"""Waiting for a condition: the one way in which tests wait for what tells nobody when it happens.

A time limit is there so that a test that will never end says what it waited for. It asserts nothing about speed: on a
busy machine all things take their time.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, overload

Found = TypeVar("Found")

WITHIN = 120.0
"""Seconds. Generous, and less than the limit of a whole test, which could not say what was waited for."""

AGAIN = 0.01


@overload
async def until(
    condition: Callable[[], Awaitable[Found | None]], what: str, *, within: float = WITHIN, again: float = AGAIN
) -> Found: ...


@overload
async def until(
    condition: Callable[[], Found | None], what: str, *, within: float = WITHIN, again: float = AGAIN
) -> Found: ...


async def until(condition: Callable[[], Any], what: str, *, within: float = WITHIN, again: float = AGAIN) -> Any:
    """What the condition answers, as soon as that is true. `what`: what is waited for, as in "until …"."""
    end = time.monotonic() + within
    while True:
        found = condition()
        if inspect.isawaitable(found):
            found = await found
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(_complaint(what, within, found))
        await asyncio.sleep(again)


def wait_until(
    condition: Callable[[], Found | None], what: str, *, within: float = WITHIN, again: float = AGAIN
) -> Found:
    """The same for tests without a loop."""
    end = time.monotonic() + within
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(_complaint(what, within, found))
        time.sleep(again)
    return found


def _complaint(what: str, within: float, last: object) -> str:
    return f"Waited {within:.0f} s until {what}; the last answer was {last!r}."

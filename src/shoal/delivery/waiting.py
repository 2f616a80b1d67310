"""Waiting by the clock for something that may come earlier."""

from __future__ import annotations

import asyncio

from shoal.core.clock import Clock


async def news_or_time(news: asyncio.Event, seconds: float | None, clock: Clock) -> bool:
    """Until there is news, or so many seconds are over; None = however long it takes. Answers whether there was news
    before the time was over, and forgets it."""
    if news.is_set() or seconds is None:
        await news.wait()
        news.clear()
        return True
    rang = False

    def ring(alarm: asyncio.Future[None]) -> None:
        nonlocal rang
        if not alarm.cancelled():
            rang = True
            news.set()

    alarm = asyncio.ensure_future(clock.sleep(seconds))
    alarm.add_done_callback(ring)
    try:
        await news.wait()
    finally:
        alarm.cancel()
    news.clear()
    return not rang

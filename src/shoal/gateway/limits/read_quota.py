"""Rate limits for reads by API key. Each process counts for itself: a look must cost the store nothing."""

from __future__ import annotations

import math

from shoal.core.clock import Clock
from shoal.gateway.http.answer import Problem, retry_after
from shoal.gateway.limits.keys import MINUTE, ApiKey

Headers = tuple[tuple[bytes, bytes], ...]

SECONDS = MINUTE // 1000


class ReadQuota:
    """Looks per key in this minute. A long poll is one, however long, and so is a stream of events."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._minute = 0
        self._used: dict[str, int] = {}

    def spend(self, key: ApiKey) -> Headers:
        """Count one look; answers the fields that say what is left. Raises Problem 429 if nothing is."""
        if key.reads is None:
            return ()
        now = self._clock.now() / 1000
        minute = math.floor(now / SECONDS)
        if minute != self._minute:
            self._minute = minute
            self._used.clear()
        used = self._used.get(key.key_id, 0)
        resets_in = max(1, math.ceil((minute + 1) * SECONDS - now))
        if used >= key.reads:
            limits = limit_fields("reads", key.reads, used, resets_in)
            raise Problem(
                429, "too-many-reads", f"This API key may look {key.reads} times a minute.",
                headers=(*limits, retry_after(resets_in)),
            )  # fmt: skip
        self._used[key.key_id] = used + 1
        return limit_fields("reads", key.reads, used + 1, resets_in)


def limit_fields(name: str, most: int, used: int, resets_in: int) -> Headers:
    """A limit and what is left of it, as the HTTP working group has it."""
    return (
        (b"ratelimit-policy", b'"%b";q=%d;w=%d' % (name.encode(), most, SECONDS)),
        (b"ratelimit", b'"%b";r=%d;t=%d' % (name.encode(), max(0, most - used), resets_in)),
    )

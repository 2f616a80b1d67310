"""Retries with backoff: a store that is away is asked again until it answers, with growing pauses and one voice.

Only EngineUnavailable is waited for. Whatever else a store says will not change by asking again.
"""

from __future__ import annotations

import asyncio
import math
import random
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

import msgspec
import structlog

from shoal.core import log_events
from shoal.core.clock import Clock, SystemClock
from shoal.core.task import NewTask
from shoal.errors import EngineUnavailable
from shoal.frontier.contract.cache import Cache
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.exits import Exits
from shoal.frontier.contract.frontier import Ask, Enqueued, Frontier, Granted, Swept
from shoal.frontier.contract.reader import Reader

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
"""Seconds before the second try, and before each one after many: between half of that and all of it, at random."""

STEADY_AFTER = 5.0
"""Seconds after which a store that came back is taken to stay; or as many as it was away, if those are fewer."""

Answer = TypeVar("Answer")
log = structlog.get_logger("shoal")


class Retrying:
    """Shared by all who use one store in one process: while it is away one of them tries, and the others wait for that.

    So a store that comes back is not met by everybody at once, and there is one log line for each try.
    """

    def __init__(self, clock: Clock | None = None, chance: random.Random | None = None) -> None:
        self._clock = clock or SystemClock()
        self._chance = chance or random.Random()  # noqa: S311 - jitter, not secrets
        self._turn = asyncio.Lock()
        self._failures = 0
        self._away_since = 0.0
        self._steady_at = -math.inf
        self.reason = ""

    @property
    def is_away(self) -> bool:
        """Whether the store did not answer when it was last asked. `reason`: what was said instead."""
        return self._failures > 0

    @property
    def is_steady(self) -> bool:
        """Whether the store has been there for a while, so that others have found their way back to it as well."""
        return not self.is_away and self._clock.elapsed() > self._steady_at

    async def call(self, what: str, verb: Callable[[], Awaitable[Answer]]) -> Answer:
        """What `verb` answers, however long that takes. `what`: its name, for the log."""
        if not self._failures:
            try:
                return await verb()
            except EngineUnavailable as error:
                if not self._failures:
                    self._miss(error)
        async with self._turn:
            while True:
                if self._failures:
                    await self._pause(what)
                try:
                    answer = await verb()
                except EngineUnavailable as error:
                    self._miss(error)
                else:
                    self._welcome()
                    return answer

    def _miss(self, error: EngineUnavailable) -> None:
        if not self._failures:
            self._away_since = self._clock.elapsed()
        self._failures += 1
        self.reason = str(error)

    async def _pause(self, what: str) -> None:
        longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self._failures - 1, 20))
        seconds = longest * self._chance.uniform(0.5, 1.0)
        log.warning(
            log_events.STORE_UNANSWERED,
            doing=what,
            attempt=self._failures,
            next_try=f"in {seconds:.2f} s",
            reason=self.reason,
        )
        await self._clock.sleep(seconds)

    def _welcome(self) -> None:
        if self._failures:
            now = self._clock.elapsed()
            away = now - self._away_since
            log.warning(log_events.STORE_RECOVERED, after=f"{away / 1000:.1f} s", attempts=self._failures + 1)
            self._failures, self._steady_at = 0, now + min(away, STEADY_AFTER * 1000)


class RetryingEngine:
    """An engine whose verbs wait for a store that is away. What was asked may have happened before the answer was lost;
    all verbs can be asked twice, `enqueue` because each task is given a key.

    Not `exchange` and `sweep`, which are as they are: whoever asks for leases must ask anew each time, with what it
    holds then; and a sweep should not be the first to come when the store is back.
    """

    def __init__(self, engine: Engine, patience: Retrying | None = None) -> None:
        self.patience = patience or Retrying()
        self._engine = engine
        self.frontier = cast("Frontier", _PatientFrontier(engine.frontier, self.patience))
        self.reader = cast("Reader", _Patient(engine.reader, self.patience))
        self.cache = cast("Cache", _Patient(engine.cache, self.patience))
        self.exits = cast("Exits", _Patient(engine.exits, self.patience))

    @property
    def shares_clock(self) -> bool:
        return self._engine.shares_clock

    async def close(self) -> None:
        await self._engine.close()


def patient(engine: Engine) -> RetryingEngine:
    """The engine itself if it is patient already."""
    return engine if isinstance(engine, RetryingEngine) else RetryingEngine(engine)


class _Patient:
    """One of the protocols of an engine."""

    def __init__(self, verbs: Any, patience: Retrying) -> None:
        self._verbs = verbs
        self._patience = patience

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        verb = getattr(self._verbs, name)

        async def ask(*values: Any, **options: Any) -> Any:
            return await self._patience.call(name, lambda: verb(*values, **options))

        return ask


class _PatientFrontier(_Patient):
    async def exchange(self, ask: Ask) -> Granted:
        granted: Granted = await self._verbs.exchange(ask)
        return granted

    async def sweep(self) -> Swept:
        swept: Swept = await self._verbs.sweep()
        return swept

    async def enqueue(self, run_id: str, tasks: Sequence[NewTask]) -> Enqueued:
        with_keys = [_with_key(task) for task in tasks]
        return await self._patience.call("enqueue", lambda: self._verbs.enqueue(run_id, with_keys))


def _with_key(task: NewTask) -> NewTask:
    """A key that no other task has makes a duplicate only of the task itself."""
    return msgspec.structs.replace(task, key=secrets.token_bytes(32)) if task.key is None else task

"""The keys as one process knows them: new ones are found at once, and who tries many makes himself wait."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from shoal.core.secrets.box import NoKeys
from shoal.core.secrets.secret import Secret
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.gateway.http.answer import Problem
from shoal.gateway.limits.keyring import LOAD_AGAIN, LOAD_EVERY, KeyRing
from shoal.gateway.limits.keys import Scope, new_key, store_key
from shoal.gateway.limits.store_breaker import StoreBreaker
from shoal.testing.jump_clock import JumpClock
from support.waiting import until


def ring_of(engine: SqliteEngine, clock: JumpClock) -> KeyRing:
    return KeyRing(engine.registry, StoreBreaker(engine.reader.now, 60), clock, box=NoKeys())


async def test_a_key_that_was_made_a_moment_ago_is_known_after_half_a_second(engine: SqliteEngine) -> None:
    clock = JumpClock()
    ring = ring_of(engine, clock)
    await ring.load()
    secret, key = new_key("ada", (Scope.READ,), None, None, clock.now(), box=NoKeys())
    await store_key(engine.registry, key)
    clock.advance(1)
    asking = asyncio.create_task(ring.who(Secret(secret)))
    await until(lambda: clock.sleeping, "the one that asks is made to wait")
    assert clock.sleeping == (int(LOAD_AGAIN * 1000) - 1,)
    clock.advance(int(LOAD_AGAIN * 1000))
    assert await asking == key


async def test_a_key_that_was_revoked_is_refused_after_the_next_look(engine: SqliteEngine) -> None:
    clock = JumpClock()
    ring = ring_of(engine, clock)
    secret, key = new_key("ada", (Scope.READ,), None, None, clock.now(), box=NoKeys())
    await store_key(engine.registry, key)
    await ring.load()
    running = asyncio.create_task(ring.run())
    await until(lambda: clock.sleeping, "the keys are looked at again later")
    await store_key(engine.registry, msgspec.structs.replace(key, revoked_at=clock.now()))
    assert (await ring.who(Secret(secret))).key_id == key.key_id
    clock.advance(int(LOAD_EVERY * 1000))
    await until(lambda: clock.sleeping, "they were looked at")
    with pytest.raises(Problem, match="revoked"):
        await ring.who(Secret(secret))
    running.cancel()

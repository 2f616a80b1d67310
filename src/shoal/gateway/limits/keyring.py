"""The API keys as one gateway process knows them, and what it lets their holders do."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Set
from contextlib import suppress

from shoal.core.clock import Clock
from shoal.core.secrets.box import SecretBox
from shoal.core.secrets.secret import Secret
from shoal.frontier.contract.jobs import Registry
from shoal.gateway.http.answer import Problem
from shoal.gateway.limits.keys import ANYBODY, WEBHOOK, ApiKey, Scope, hashed, stored_keys
from shoal.gateway.limits.store_breaker import StoreBreaker

LOAD_EVERY = 2.0
"""Seconds by which a revoked key is refused by every process."""

LOAD_AGAIN = 0.5


class KeyRing:
    """Keys looked up by hash. As soon as one was made, everybody needs one.

    `dismiss`: is told the ids of keys that are no longer good, "" for nobody's; their holders are waited for no more.
    `box`: opens the secrets of webhooks.
    """

    def __init__(
        self,
        registry: Registry,
        breaker: StoreBreaker,
        clock: Clock,
        dismiss: Callable[[Set[str]], None] | None = None,
        *,
        box: SecretBox,
    ) -> None:
        self._clock = clock
        self._registry = registry
        self._box = box
        self._breaker = breaker
        self._dismiss = dismiss
        self._by_hash: dict[str, ApiKey] = {}
        self._good: Set[str] = frozenset({""})
        self._loaded_at = -math.inf
        self._loading = asyncio.Lock()

    async def load(self) -> None:
        """Read all keys. Raises Problem if the store cannot be asked."""
        began = self._clock.elapsed()
        keys = await self._breaker.ask(lambda: stored_keys(self._registry))
        self._by_hash = {key.hash: key for key in keys}
        self._loaded_at = began
        before, self._good = self._good, {key.key_id for key in keys if key.revoked_at is None} if keys else {""}
        over = before - self._good
        if over and self._dismiss is not None:
            self._dismiss(over)

    async def run(self) -> None:
        """Keep up with what operators change."""
        while True:
            await self._clock.sleep(LOAD_EVERY)
            with suppress(Problem):
                await self.load()

    def webhook_secret(self, key_id: str) -> str | None:
        """What messages to the holder of a key are signed with, also if it was revoked; None = it is not known here.

        Raises CannotUnseal if this process does not have the key that it is sealed with.
        """
        found = [key.webhook for key in self._by_hash.values() if key.key_id == key_id and key.webhook]
        return self._box.open(found[0], WEBHOOK) if found else None

    @property
    def are_needed(self) -> bool:
        """Whether a key was ever made."""
        return bool(self._by_hash)

    def check(self, key: ApiKey) -> None:
        """Raise Problem 401 if this key, which was good once, is not any more."""
        if key.key_id not in self._good:
            raise _who_are_you("This API key is not known, or has been revoked.")

    async def who(self, given: Secret | None) -> ApiKey:
        """Whose request this is. Raises Problem 401 for no key where one is needed, and for one that is not good."""
        if given is None:
            if self._by_hash:
                raise _who_are_you("This service needs an API key: send it as `Authorization: Bearer KEY`.")
            return ANYBODY
        hash_ = hashed(given.reveal())
        key = self._by_hash.get(hash_)
        if key is None:
            await self._breaker.bounded(self._load_after(self._clock.elapsed()))
            key = self._by_hash.get(hash_)
        if key is None or key.revoked_at is not None:
            raise _who_are_you("This API key is not known, or has been revoked.")
        return key

    async def _load_after(self, moment: float) -> None:
        """A key that is not known may have been made a moment ago. Who tries many makes himself wait, not us work."""
        async with self._loading:
            if self._loaded_at < moment:
                await self._clock.sleep(LOAD_AGAIN - (moment - self._loaded_at) / 1000)
                await self.load()


def require(key: ApiKey, scope: Scope, scraper: str | None = None) -> None:
    """Raise Problem 403 if the key does not allow this."""
    if scope not in key.scopes and Scope.ADMIN not in key.scopes:
        raise Problem(403, "not-allowed", f"This API key does not have the scope {scope.value!r}.")
    if scraper is not None and key.scrapers is not None and scraper not in key.scrapers:
        raise Problem(403, "not-allowed", f"This API key is not for the scraper {scraper!r}.")


def may_see(key: ApiKey, owner: str) -> bool:
    """Whether a job of this owner exists for whoever has this key."""
    return owner == key.key_id or Scope.ADMIN in key.scopes


def _who_are_you(detail: str) -> Problem:
    return Problem(401, "no-api-key", detail, headers=((b"www-authenticate", b"Bearer"),))

"""API keys: who may do what, and how often. Only hashes are stored; a key is shown once, when it is made."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from enum import StrEnum

import msgspec

from shoal.api.webhook_signature import webhook_secret
from shoal.core.clock import Moment
from shoal.core.secrets.box import SecretBox
from shoal.errors import UsageError
from shoal.frontier.contract.jobs import Quota, Registry

KIND = "api-key"
PREFIX = "shoal_"
MINUTE = 60_000
WEBHOOK = "webhook"
"""What secrets of webhooks are sealed for."""


class Scope(StrEnum):
    """What a key allows. `submit` and `read` concern the key's own jobs; `admin` sees and cancels those of all.

    `metrics`: the figures of the whole service, and nothing else.
    """

    SUBMIT = "submit"
    READ = "read"
    ADMIN = "admin"
    METRICS = "metrics"


class ApiKey(msgspec.Struct, frozen=True):
    """A key as it is stored, under its id. `limit`: jobs per minute, None = any. `scrapers`: None = all.

    `reads`: looks per minute, by each gateway process; None = any.
    """

    key_id: str
    name: str
    hash: str
    scopes: tuple[Scope, ...]
    created_at: Moment
    limit: int | None = None
    scrapers: tuple[str, ...] | None = None
    revoked_at: Moment | None = None
    reads: int | None = None
    webhook: str = ""
    """What messages about its jobs are signed with, sealed. Empty = it was made before there was such a thing."""

    @property
    def quota(self) -> Quota | None:
        return None if self.limit is None else Quota(self.limit, MINUTE)


ANYBODY = ApiKey("", "", "", (Scope.SUBMIT, Scope.READ), 0)
"""Who comes without a key, where none was ever made. Whoever knows the id of a job may see it."""


def new_key(
    name: str,
    scopes: Sequence[Scope],
    limit: int | None,
    scrapers: Sequence[str] | None,
    now: Moment,
    reads: int | None = None,
    *,
    box: SecretBox,
) -> tuple[str, ApiKey]:
    """A key, as its user gets it and as it is stored."""
    secret = PREFIX + secrets.token_urlsafe(32)
    chosen = None if scrapers is None else tuple(scrapers)
    key_id = f"key_{secrets.token_hex(6)}"
    webhook = box.seal(webhook_secret(secret), WEBHOOK)
    return secret, ApiKey(key_id, name, hashed(secret), tuple(scopes), now, limit, chosen, None, reads, webhook)


def hashed(secret: str) -> str:
    """A key has 256 random bits: one round of SHA-256 keeps it as secret as a slow hash would."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


async def stored_keys(registry: Registry) -> list[ApiKey]:
    """All keys that were ever made, oldest first."""
    records = await registry.records(KIND)
    return sorted((msgspec.json.decode(body, type=ApiKey) for body in records.values()), key=lambda k: k.created_at)


async def store_key(registry: Registry, key: ApiKey) -> None:
    """Keep a key, or its new state."""
    await registry.put_record(KIND, key.key_id, msgspec.json.encode(key))


async def find_key(registry: Registry, text: str) -> ApiKey:
    """The key of that id or name. Raises UsageError if there is none, or several."""
    found = [key for key in await stored_keys(registry) if text in (key.key_id, key.name)]
    alive = [key for key in found if key.revoked_at is None] or found
    if not alive:
        raise UsageError(f"There is no API key {text!r}. `shoal keys list` lists those that exist.")
    if len(alive) > 1:
        raise UsageError(f"{len(alive)} API keys are called {text!r}; name one by its id, such as {alive[0].key_id}.")
    return alive[0]

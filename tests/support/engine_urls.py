"""The URL of an empty store on each engine, for tests of what must hold on all of them."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from servers.postgres import shared_server
from servers.postgres_stage import emptied_store
from servers.redis import running_redis

ENGINES = ("sqlite", "postgresql", "redis")


def mainly_on(*chosen: str, others: Sequence[str] = ENGINES) -> list[str | ParameterSet]:
    """These engines in `make test`, and the others too in `make proof`: for what takes long, and is proven of each
    engine by cheaper tests."""
    return [*chosen, *(pytest.param(kind, marks=pytest.mark.proof) for kind in others if kind not in chosen)]


@contextmanager
def empty_store(kind: str, folder: Path) -> Iterator[str]:
    """A store of its own that nothing is in yet."""
    if kind == "sqlite":
        yield f"sqlite:///{folder}/fleet.db"
    elif kind == "postgresql":
        yield shared_server().url(schema=f"fleet_{secrets.token_hex(4)}")
    else:
        with running_redis() as server:
            yield server.url


@asynccontextmanager
async def emptied(kind: str, folder: Path) -> AsyncIterator[str]:
    """The same for tests that leave no process behind: one on PostgreSQL has been used before, and is there at once."""
    if kind == "postgresql":
        async with emptied_store() as url:
            yield url
    else:
        with empty_store(kind, folder) as url:
            yield url

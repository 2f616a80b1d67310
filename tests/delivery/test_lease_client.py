"""Leases are got and ended as promised, on every engine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shoal.testing.lease_client_contract import LeaseClientContract
from support.engine_urls import empty_store


@contextmanager
def _store(kind: str, folder: Path) -> Iterator[str]:
    """An empty store, and after that was opened, notebooks in the test's own folder, those of other processes too."""
    with empty_store(kind, folder) as url, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))  # what is there to choose it by was read long ago
        yield url


class TestOnSqlite(LeaseClientContract):
    @pytest.fixture
    def store_url(self, tmp_path: Path) -> Iterator[str]:
        with _store("sqlite", tmp_path) as url:
            yield url


class TestOnPostgres(LeaseClientContract):
    @pytest.fixture
    def store_url(self, tmp_path: Path) -> Iterator[str]:
        with _store("postgresql", tmp_path) as url:
            yield url


class TestOnRedis(LeaseClientContract):
    @pytest.fixture
    def store_url(self, tmp_path: Path) -> Iterator[str]:
        with _store("redis", tmp_path) as url:
            yield url

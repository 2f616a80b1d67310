"""What holds for every test."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def own_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test imports from a folder of its own is forgotten after it."""
    before = list(sys.path)
    yield
    sys.path[:] = before
    folders = str(tmp_path_factory.getbasetemp())
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(folders):
            del sys.modules[name]

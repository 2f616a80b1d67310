"""What holds for every test."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

TEMPORARY = Path(tempfile.gettempdir()).resolve()
REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def own_modules() -> Iterator[None]:
    """What a test imports from a folder of its own is forgotten after it."""
    before = list(sys.path)
    yield
    sys.path[:] = before
    for name, module in list(sys.modules.items()):
        file = Path(getattr(module, "__file__", None) or "/")
        if file.is_relative_to(TEMPORARY) and not file.is_relative_to(REPOSITORY):
            del sys.modules[name]

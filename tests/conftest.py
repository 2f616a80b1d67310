"""What holds for every test."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

TEMPORARY = str(Path(tempfile.gettempdir()).resolve())


@pytest.fixture(autouse=True)
def own_modules() -> Iterator[None]:
    """What a test imports from a folder of its own is forgotten after it."""
    before = list(sys.path)
    yield
    sys.path[:] = before
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(TEMPORARY):
            del sys.modules[name]

"""What holds for every test."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from command_line import forget_modules


@pytest.fixture(autouse=True)
def own_modules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a test imports from a folder of its own is forgotten after it."""
    before = list(sys.path)
    yield
    sys.path[:] = before
    forget_modules(tmp_path_factory.getbasetemp())


@pytest.fixture(autouse=True)
def own_logs() -> None:
    """A logger that was used before asks again how to log, and not the configuration of that time."""
    for name, module in list(sys.modules.items()):
        if name.startswith("shoal.") and hasattr(module, "log"):
            vars(module.log).pop("bind", None)

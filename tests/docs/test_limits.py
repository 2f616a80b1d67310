"""The page on limits says what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.core import storable

PAGE = (Path(__file__).parents[2] / "docs/reference/limits.md").read_text()
LIMITS = {name: value for name, value in vars(storable).items() if name.startswith("MAX_")}


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_is_on_its_page(name: str) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    assert any(f"{LIMITS[name]:,}" in row for row in rows), name

"""The version of a store, as whoever opened it is told."""

from __future__ import annotations

from typing import NamedTuple


class Schema(NamedTuple):
    """The version of a store that was opened. `found`: what it was before; None = it was made by this opening."""

    version: int
    found: int | None

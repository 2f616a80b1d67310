"""Ids of runs, as people may choose them."""

from __future__ import annotations

import re

from shoal.errors import UsageError

LAST = "last"
"""Where a run is named, this means the newest one."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")


def check_run_id(text: str) -> None:
    """Raises UsageError for what a new run cannot be called."""
    if text == LAST:
        raise UsageError("A run cannot be called 'last': that means the newest run. Choose another id.")
    if _RUN_ID.fullmatch(text) is None:
        raise UsageError(
            f"A run cannot be called {text!r}: an id is 1 to 128 letters, digits, '-', '_', '.' and ':', "
            "a letter or digit first."
        )

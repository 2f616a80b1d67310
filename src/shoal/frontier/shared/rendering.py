"""Constants in SQL and Lua: `{{QUIET}}` in a file becomes the number that `shoal.core` says, when the file is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from shoal.core import politeness

CONSTANTS: Final[Mapping[str, int]] = {
    "KEPT_AT_REST": politeness.KEPT_AT_REST,
    "QUARANTINE_AFTER": politeness.QUARANTINE_AFTER,
    "QUARANTINE_FIRST": politeness.QUARANTINE_FIRST,
    "QUARANTINE_MOST": politeness.QUARANTINE_MOST,
    "QUIET": politeness.QUIET,
    "START_WINDOW_LEAST": politeness.START_WINDOW_LEAST,
    "START_WINDOW_MOST": politeness.START_WINDOW_MOST,
    "START_WINDOW_SHARE": politeness.START_WINDOW_SHARE,
    "TRANSIT_LEAST": politeness.TRANSIT_LEAST,
    "TRANSIT_SHARE": politeness.TRANSIT_SHARE,
    "WORKER_KEPT": politeness.WORKER_KEPT,
}
"""What engines reckon with inside of their stores, by the name that it has there."""

_NAME = re.compile(r"\{\{([A-Z][A-Z_]*)\}\}")


def render(text: str, constants: Mapping[str, int] = CONSTANTS) -> str:
    """The text with each `{{NAME}}` as its number. Raises KeyError for a name that is none of the constants."""
    return _NAME.sub(lambda found: str(constants[found[1]]), text)

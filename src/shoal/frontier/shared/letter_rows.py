"""Dead letters as the engines answer them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.core.outcome import Reason
from shoal.frontier.contract.reader import DeadLetter

_reason = msgspec.json.Decoder(Reason).decode


def dead_letter(row: Sequence[Any]) -> DeadLetter:
    """One row: the fields of a `DeadLetter`, its reason as JSON."""
    task, url, site, lane, handler, attempts, crashes, reason, died_at = row
    return DeadLetter(task, url, site, lane, handler, attempts, crashes, _reason(reason), died_at)

"""Leases whose grant never reached its worker: the answer was lost, so nobody works on them and no request was made."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.core.outcome import Settlement, Snoozed
from shoal.frontier.contract.frontier import Ask


def lost_grants(ask: Ask, leases: Iterable[tuple[str, int, int]]) -> list[Settlement]:
    """Settlements that give back those of a worker's leases (run id, task, token) that it does not know of."""
    if ask.held is None:
        return []
    known = {*ask.held, *(settlement.token for settlement in ask.settlements)}
    return [Settlement(run_id, task, token, Snoozed()) for run_id, task, token in leases if token not in known]

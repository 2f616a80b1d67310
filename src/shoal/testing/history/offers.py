"""When each URL was let into a run, as far as the event log shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from shoal.core.outcome import Done
from shoal.core.task import NewTask
from shoal.testing.history.lives import Effect, Lives
from shoal.testing.history.record import RecordedCall

Batch = tuple[str, int, int]
"""One list of new tasks: process, moment of the call, position of the settlement in it."""


@dataclass(slots=True)
class OfferedTask:
    """One URL. It was accepted after `earliest` and before `latest` (infinity = cannot be known).

    `batch` and `position`: where it surely was accepted; None = several calls may have been the first.
    """

    task: NewTask
    earliest: float = math.inf
    latest: float = math.inf
    batch: Batch | None = None
    position: int = 0
    certain: bool = False
    """Whether some call that offered it certainly took effect."""
    tries: list[tuple[int, Batch, int, bool]] = field(default_factory=list)


def offers_of(lives: Lives) -> dict[str, OfferedTask]:
    """All URLs that were offered to the run with a key to know them by, and may have been let in."""
    offers: dict[str, OfferedTask] = {}
    for task, call, batch, position, certain, at_once in _tries(lives):
        if task.key is None:
            continue
        offer = offers.setdefault(task.url, OfferedTask(task))
        offer.earliest = min(offer.earliest, call.at)
        offer.certain = offer.certain or certain
        if certain and at_once and call.answered_at is not None and call.answered_at < offer.latest:
            offer.latest = call.answered_at
            offer.batch, offer.position = batch, position
        offer.tries.append((call.at, batch, position, certain))
    for offer in offers.values():
        if any(batch != offer.batch and at <= offer.latest for at, batch, _, _ in offer.tries):
            offer.batch = None
    return offers


def _tries(lives: Lives) -> Iterator[tuple[NewTask, RecordedCall, Batch, int, bool, bool]]:
    """Each offer that may have taken effect: with its call, its place there, whether it certainly did, and whether at
    the moment of the answer (tasks for other sites may be let in a little later)."""
    for call in lives.history.of("enqueue"):
        if call.given.run_id == lives.run_id:
            for position, task in enumerate(call.given.tasks):
                yield task, call, (call.process, call.at, -1), position, not call.doubtful, True
    for life in lives:
        for ending in life.endings:
            outcome = ending.settlement.outcome
            if ending.effect is Effect.LATE or not isinstance(outcome, Done):
                continue
            batch = (ending.call.process, ending.call.at, ending.settlement.task)
            for position, task in enumerate(outcome.tasks):
                near = task.site == life.lease.task.site
                yield task, ending.call, batch, position, ending.effect is Effect.STOOD, near

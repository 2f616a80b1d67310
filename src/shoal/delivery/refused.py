"""Settlements that a store refuses: found by halving, so that one bad value costs its own task and no other.

A store takes the settlements of an exchange in one transaction. If it refuses one value of one of them, it refuses all;
asked again, it would again. So they are settled apart, in halves, until the one that is refused is alone: that one ends
as a dead letter with the reason, without what came of it. Meanwhile a sudden death of this process is a crash of each
task that is asked about: whatever there is in it, no page ends workers for ever.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import NamedTuple

import structlog

from shoal.core import log_events
from shoal.core.outcome import Blame, Dead, Reason, Settlement
from shoal.core.storable import cleaned
from shoal.errors import ShoalError, Unstorable
from shoal.frontier.contract.frontier import Granted

Settle = Callable[[Sequence[Settlement]], Awaitable[Granted]]
Handling = Callable[[int], AbstractContextManager[None]]

log = structlog.get_logger("shoal")


def nobody(_task: int) -> AbstractContextManager[None]:
    """No crash is charged."""
    return nullcontext()


class Heard(NamedTuple):
    """What the store has heard of instead of what it refused, and the tokens of what came too late."""

    settlements: list[Settlement]
    late: list[int]


def is_refusal(error: Exception) -> bool:
    """Whether a store has refused what it was given, and not its service: what it says on purpose (`Unstorable`), or a
    failure that nobody has foreseen."""
    return isinstance(error, Unstorable) or not isinstance(error, ShoalError)


async def settle_apart(settle: Settle, settlements: Sequence[Settlement], handling: Handling = nobody) -> Heard:
    """Settle these, which were refused together. `settle`: brings some to the store. `handling`: notes a task.

    Raises EngineError if the store fails otherwise: then some may have been settled, and it can be repeated.
    """
    middle = len(settlements) // 2
    heard = Heard([], [])
    for some in (settlements[:middle], settlements[middle:]):
        if some:
            told = await _settle_or_part(settle, some, handling)
            heard.settlements.extend(told.settlements)
            heard.late.extend(told.late)
    return heard


async def _settle_or_part(settle: Settle, some: Sequence[Settlement], handling: Handling) -> Heard:
    with ExitStack() as noted:
        for settlement in some:
            noted.enter_context(handling(settlement.task))
        try:
            granted = await settle(some)
        except Exception as error:
            if not is_refusal(error):
                raise
            refused = error
        else:
            return Heard(list(some), list(granted.late))
    if len(some) > 1:
        return await settle_apart(settle, some, handling)
    return await _bury(settle, some[0], refused)


async def _bury(settle: Settle, settlement: Settlement, refused: Exception) -> Heard:
    """The task ends with the reason, and with nothing of what came of it but its requests.

    If the store refuses even that, it is not about this page: the lease is left to run out, and the rest goes on.
    """
    why = cleaned(refused) if isinstance(refused, Unstorable) else f"{type(refused).__name__}: {cleaned(refused)}"
    about = {"run": settlement.run_id, "task": settlement.task}
    log.error(log_events.SETTLEMENT_UNSTORABLE, **about, reason=why, exc_info=refused)
    dead = Settlement(
        settlement.run_id,
        settlement.task,
        settlement.token,
        Dead(Reason(Blame.HANDLER, cleaned(f"what came of this page was refused by the store: {why}"))),
        settlement.started_at,
        settlement.requests,
        settlement.received,
    )
    try:
        granted = await settle([dead])
    except Exception as error:
        if not is_refusal(error):
            raise
        log.exception(log_events.SETTLEMENT_UNSTORABLE, **about, reason=cleaned(error))
        return Heard([], [])
    return Heard([dead], list(granted.late))

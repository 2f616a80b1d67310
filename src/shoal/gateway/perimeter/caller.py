"""Who waits for an answer: whether the client is still there, and whether all of its request has come."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

CALLER = "shoal.caller"
"""Where the scope of a request has it."""


class ClientGone(Exception):
    """The client hung up before it had said everything, or before it had its answer."""


class Caller:
    """The client of one request. The connection writes it, whoever answers reads it."""

    __slots__ = ("gone", "heard", "leave")

    def __init__(self, *, heard: bool = False) -> None:
        self.gone = False
        self.heard = heard
        self.leave: Callable[[], None] | None = None
        """What to do when the client goes, while somebody waits for its sake."""

    def left(self) -> None:
        """The client has hung up: nobody waits for it any longer."""
        self.gone = True
        leave, self.leave = self.leave, None
        if leave is not None:
            leave()

    def check(self) -> None:
        """Raise ClientGone if there is nobody to answer."""
        if self.gone:
            raise ClientGone


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """The client of this request; of one that did not come by a connection of ours, all has been heard."""
    found: Caller | None = scope.get(CALLER)
    return Caller(heard=True) if found is None else found

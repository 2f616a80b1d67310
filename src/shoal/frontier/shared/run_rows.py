"""Runs as every engine stores them: the columns (or fields) that a `Run` is made of, with what is packed in them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from shoal.core.clock import Moment
from shoal.core.task import Policy, RunState
from shoal.frontier.contract.frontier import Counters, Run
from shoal.frontier.contract.mover import Move

_policy = msgspec.json.Decoder(Policy).decode
_move = msgspec.json.Decoder(Move).decode

RUN_COUNTERS = Counters.__struct_fields__
"""The counters of a run, in the order in which stores answer them."""


class StoredRun(NamedTuple):
    """A run as it is read. `policy`, `move`: JSON."""

    run_id: str
    scraper: str
    mode: str
    state: str
    queue: str
    policy: str | bytes
    input: bytes | None
    created_at: Moment
    ended_at: Moment | None
    move: str | bytes | None

    def run(self, lanes: dict[str, int], counters: Counters) -> Run:
        """With what is left in its lanes, and its counters."""
        return Run(
            self.run_id,
            self.scraper,
            self.mode,
            RunState(self.state),
            self.queue,
            _policy(self.policy),
            self.input,
            self.created_at,
            self.ended_at,
            counters,
            lanes,
            None if self.move is None else _move(self.move),
        )

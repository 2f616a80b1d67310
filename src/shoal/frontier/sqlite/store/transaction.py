"""One write transaction: the connection, the moment it happens at, and what it adds to the counters."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

import msgspec

from shoal.core.clock import Moment
from shoal.core.storable import findable
from shoal.core.task import Policy, RunState
from shoal.errors import UnknownRun
from shoal.frontier.contract.mover import Move
from shoal.frontier.shared.run_rows import RUN_COUNTERS
from shoal.frontier.sqlite.store.statements import STATEMENTS, for_rows
from shoal.frontier.sqlite.store.writer_cache import WriterCache

Answer = TypeVar("Answer")

encode = msgspec.json.encode
_decode = msgspec.json.decode
_policy = msgspec.json.Decoder(Policy)
_move = msgspec.json.Decoder(Move)

READY, DELAYED, LEASED, HELD = 0, 1, 2, 3
"""How the state of a task is stored."""

ROWS_AT_ONCE = 64

COUNT_RUN = (  # the one statement that is not in a file: it lists every counter there is
    "UPDATE run SET "  # noqa: S608 - made of the names above only
    + ", ".join(f"{name} = {name} + :{name}" for name in RUN_COUNTERS)
    + " WHERE id = :run"
)


class RunRow(msgspec.Struct, frozen=True):
    """What does not change about a run, and its state at the moment of reading."""

    id: int
    run_id: str
    scraper: str
    queue: str
    state: RunState
    policy: Policy
    is_job: bool = False
    move: Move | None = None


class Transaction:
    """Statements by name: few large ones, because each one gives up the interpreter lock.

    Lists go in and come out as JSON. Rows of several values go in as `VALUES`, many at a time, which is less work than
    to take them out of JSON. Counters are added up here and written once, by `close_books`: of runs, of lines, and of
    the tasks that are ready for a visit (line and site).
    """

    def __init__(self, connection: sqlite3.Connection, now: Moment, cache: WriterCache) -> None:
        self.connection = connection
        self.now = now
        self.cache = cache
        self.runs: defaultdict[int, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.lines: defaultdict[int, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.ready: defaultdict[tuple[int, int], int] = defaultdict(int)
        self.freed: set[int] = set()
        """Sites whose leases were ended by this verb: until it is over, they bear what they bore when it began."""

    def run(self, verb: str, **values: Any) -> int:
        """Run a statement for its effect. Answers the number of rows changed. Lists and dicts are sent as JSON."""
        return self.connection.execute(STATEMENTS[verb], _bound(values)).rowcount

    def insert(self, verb: str, **values: Any) -> int:
        """Run a statement that inserts one row. Answers the row's number."""
        return self.connection.execute(STATEMENTS[verb], _bound(values)).lastrowid or 0

    def write_rows(self, verb: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement that ends in the values of one row for all these rows, in as few steps as can be."""
        done = 0
        size = ROWS_AT_ONCE
        while done < len(rows):
            while size > len(rows) - done:
                size //= 2
            values = list(chain.from_iterable(rows[done : done + size]))
            self.connection.execute(for_rows(verb, size), values)
            done += size

    def value(self, verb: str, **values: Any) -> Any:
        """The single value of a statement, as it is."""
        row = self.connection.execute(STATEMENTS[verb], _bound(values)).fetchone()
        return row[0] if row else None

    def row(self, verb: str, **values: Any) -> Any:
        """The single row of a statement; None if there is none."""
        return self.connection.execute(STATEMENTS[verb], _bound(values)).fetchone()

    def table(self, verb: str, **values: Any) -> list[Any]:
        """All that a statement answers, row by row."""
        return self.connection.execute(STATEMENTS[verb], _bound(values)).fetchall()

    def numbers(self, verb: str, **values: Any) -> list[int]:
        """The first column of what a statement answers."""
        return [row[0] for row in self.connection.execute(STATEMENTS[verb], _bound(values))]

    def rows(self, verb: str, **values: Any) -> Any:
        """What a statement answers that gives one JSON array (or object); an empty list if it gives no row."""
        text = self.value(verb, **values)
        return _decode(text) if text else []

    def read(self, verb: str, decoder: msgspec.json.Decoder[Answer], **values: Any) -> Answer:
        """What a statement answers that always gives one JSON array, as objects."""
        return decoder.decode(self.value(verb, **values))

    def find_run(self, run_id: str) -> RunRow:
        """The run of that id. Raises UnknownRun."""
        row = self.rows("find_run", run_id=findable(run_id))
        if not row:
            raise UnknownRun(run_id)
        number, scraper, queue, state, policy, is_job, move = row
        mark = None if move is None else _move.decode(move)
        return RunRow(number, run_id, scraper, queue, RunState(state), _policy.decode(policy), bool(is_job), mark)

    def name_runs(self, numbers: Iterable[int]) -> dict[int, tuple[str, str]]:
        """Id and state of runs by their numbers."""
        return {number: (run_id, state) for number, run_id, state in self.rows("name_runs", runs=list(numbers))}

    def close_books(self) -> None:
        """Write the counters, and end the runs that have nothing left."""
        for run, counts in self.runs.items():
            self.connection.execute(COUNT_RUN, {"run": run} | {name: counts[name] for name in RUN_COUNTERS})
        over = [run for run, counts in self.runs.items() if counts["waiting"] + counts["leased"] <= 0]
        if over:
            self.run("finish_runs", now=self.now, runs=over)
        self.count_lines()
        self.schedule()
        self._clear_books()

    def count_lines(self) -> None:
        """Write the counters of lines."""
        for line, counts in self.lines.items():
            if counts["waiting"] or counts["leased"]:
                self.run("count_line", line=line, waiting=counts["waiting"], leased=counts["leased"])
        self.lines.clear()

    def schedule(self) -> None:
        """Write down what became ready for a visit, or no longer is."""
        places = [(line, site, self.now, ready) for (line, site), ready in self.ready.items() if ready]
        self.ready.clear()
        if places:
            self.write_rows("schedule", places)
            fewer = [[line, site] for line, site, _, ready in places if ready < 0]
            if fewer:
                self.run("end_visits", places=fewer)

    def forget(self) -> None:
        """Start anew, as after a verb that was undone."""
        self._clear_books()
        self.cache.forget()

    def _clear_books(self) -> None:
        self.runs.clear()
        self.lines.clear()
        self.ready.clear()
        self.freed.clear()


def _bound(values: dict[str, Any]) -> dict[str, Any]:
    return {name: encode(value).decode() if type(value) in (list, dict) else value for name, value in values.items()}

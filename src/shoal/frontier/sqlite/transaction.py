"""One write transaction: the connection, the moment it happens at, and what it adds to the counters."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Collection
from typing import Any

import msgspec

from shoal.clock import Moment
from shoal.errors import UnknownRun
from shoal.frontier.protocol import Counters
from shoal.frontier.sqlite.statements import STATEMENTS
from shoal.task import Policy, RunState

encode = msgspec.json.encode
_decode = msgspec.json.decode

READY, DELAYED, LEASED, HELD = 0, 1, 2, 3
"""How the state of a task is stored."""

RUN_COUNTERS = Counters.__struct_fields__

COUNT_RUNS = (  # the one statement that is not in a file: it lists every counter there is
    "UPDATE run SET "  # noqa: S608 - made of the names above only
    + ", ".join(f"{name} = {name} + (j.value ->> {position})" for position, name in enumerate(RUN_COUNTERS, 1))
    + " FROM json_each(:rows) AS j WHERE run.id = j.value ->> 0"
)


class RunRow(msgspec.Struct, frozen=True):
    """What does not change about a run, and its state at the moment of reading."""

    id: int
    run_id: str
    scraper: str
    queue: str
    state: RunState
    policy: Policy


class Transaction:
    """Statements by name, with JSON in and out: few large statements, because each one gives up the interpreter lock.

    Counters are added up here and written once, by `close_books`: of runs, of lines, of what sites have to bear, and of
    the tasks that are ready for a visit (line and site).
    """

    def __init__(self, connection: sqlite3.Connection, now: Moment, numbers: dict[str, int] | None = None) -> None:
        self.connection = connection
        self.now = now
        self.known_numbers = {} if numbers is None else numbers
        self.new_numbers: dict[str, int] = {}
        self.runs: defaultdict[int, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.lines: defaultdict[int, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.loads: defaultdict[int, int] = defaultdict(int)
        self.ready: defaultdict[tuple[int, int], int] = defaultdict(int)

    def run(self, verb: str, **values: Any) -> int:
        """Run a statement for its effect. Answers the number of rows changed. Lists and dicts are sent as JSON."""
        return self.connection.execute(STATEMENTS[verb], _bound(values)).rowcount

    def value(self, verb: str, **values: Any) -> Any:
        """The single value of a statement, as it is."""
        row = self.connection.execute(STATEMENTS[verb], _bound(values)).fetchone()
        return row[0] if row else None

    def numbers(self, verb: str, **values: Any) -> list[int]:
        """The first column of what a statement answers."""
        return [row[0] for row in self.connection.execute(STATEMENTS[verb], _bound(values))]

    def rows(self, verb: str, **values: Any) -> Any:
        """What a statement answers that gives one JSON array (or object); an empty list if it gives no row."""
        text = self.value(verb, **values)
        return _decode(text) if text else []

    def find_run(self, run_id: str) -> RunRow:
        """The run of that id. Raises UnknownRun."""
        row = self.rows("find_run", run_id=run_id)
        if not row:
            raise UnknownRun(run_id)
        number, scraper, queue, state, policy = row
        return RunRow(number, run_id, scraper, queue, RunState(state), msgspec.json.decode(policy, type=Policy))

    def close_books(self) -> None:
        """Write the counters, and end the runs that have nothing left."""
        if self.runs:
            rows = [[run, *(counts[name] for name in RUN_COUNTERS)] for run, counts in self.runs.items()]
            self.connection.execute(COUNT_RUNS, {"rows": encode(rows).decode()})
            self.run("finish_runs", now=self.now, runs=list(self.runs))
        if self.lines:
            self.run("count_lines", rows=[[line, c["waiting"], c["leased"]] for line, c in self.lines.items()])
        loads = [[site, load] for site, load in self.loads.items() if load]
        if loads:
            self.run("load_sites", rows=loads)
        places = [[line, site, ready] for (line, site), ready in self.ready.items() if ready]
        if places:
            self.run("schedule", places=places, now=self.now)
            if any(ready < 0 for _, _, ready in places):
                self.run("end_visits", places=places)
        self._clear_books()

    def forget(self) -> None:
        """Start anew, as after a verb that was undone."""
        self._clear_books()
        self.new_numbers.clear()

    def _clear_books(self) -> None:
        self.runs.clear()
        self.lines.clear()
        self.loads.clear()
        self.ready.clear()

    def number_sites(self, sites: Collection[str]) -> dict[str, int]:
        """The numbers of sites that exist. A site keeps its number for ever, so those once committed are remembered."""
        unknown = [site for site in sites if site not in self.known_numbers and site not in self.new_numbers]
        if unknown:
            self.new_numbers |= self.rows("number_sites", sites=unknown)
        return {site: self.known_numbers.get(site) or self.new_numbers[site] for site in sites}


def _bound(values: dict[str, Any]) -> dict[str, Any]:
    return {name: encode(value).decode() if type(value) in (list, dict) else value for name, value in values.items()}

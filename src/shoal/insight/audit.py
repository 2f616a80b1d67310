"""The proof of politeness: a log of every request that was made, and what can be concluded from it. Pure.

Workers keep the log with their settlements, as notes of the stream `requests/RUN`. Each request says what was allowed
to it at that moment, so that the proof needs nothing but the log. Requests of a worker that was killed before it could
settle are not in it; the number of requests that the run counts tells how many it has.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from shoal.core.clock import Millis, Moment

KEPT: Millis = 30 * 24 * 3600 * 1000
"""How long the log of a run is kept."""

SHOWN = 20
"""Of many broken rules, so many are described; all are counted."""


class Robots(StrEnum):
    """What robots.txt had to do with a request."""

    ALLOWED = "a"
    FILE = "r"
    """It was a request for robots.txt itself."""
    IGNORED = "i"
    """The scraper says `obey_robots=False`."""
    DISALLOWED = "d"
    """It was disallowed, or not known to be allowed, when it was made: this must not happen."""


class RequestRecord(msgspec.Struct, frozen=True, array_like=True):
    """One request: it was sent between `at - slack` and `at` by the store's clock, and over `took` later.

    For those that follow another under the same lease `slack` is 0: their distance is known.

    `delay`, `site_delay`, `concurrency`: what was in force. `status`: 0 = there was no answer.
    """

    site: str
    exit: str
    at: Moment
    slack: Millis
    took: Millis
    status: int
    delay: Millis
    site_delay: Millis
    concurrency: int
    robots: Robots


_decoder = msgspec.json.Decoder(list[RequestRecord])


def stream_of(run_id: str) -> str:
    """The stream of notes that holds the requests of a run."""
    return f"requests/{run_id}"


def written(records: Sequence[RequestRecord]) -> bytes:
    """Records as the body of one note."""
    return msgspec.json.encode(records)


def read(body: bytes) -> list[RequestRecord]:
    """The records of one note."""
    return _decoder.decode(body)


class Rule(StrEnum):
    """What can be broken."""

    DELAY = "delay"
    SITE_DELAY = "site delay"
    CONCURRENCY = "concurrency"
    ROBOTS = "robots.txt"


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A rule that was broken: where, when, by how much: milliseconds, or for CONCURRENCY and ROBOTS, requests."""

    rule: Rule
    site: str
    exit: str | None
    at: Moment
    found: int
    allowed: int


@dataclass(slots=True)
class RequestLog:
    """The requests of one slot, or of one site over all exits: when each began and ended, and what it was allowed."""

    begun: array[int] = field(default_factory=lambda: array("q"))
    earliest: array[int] = field(default_factory=lambda: array("q"))
    ended: array[int] = field(default_factory=lambda: array("q"))
    apart: array[int] = field(default_factory=lambda: array("q"))
    at_once: array[int] = field(default_factory=lambda: array("q"))

    def add(self, record: RequestRecord, apart: Millis) -> None:
        self.begun.append(record.at)
        self.earliest.append(record.at - record.slack)
        self.ended.append(record.at + record.took)
        self.apart.append(apart)
        self.at_once.append(record.concurrency)


@dataclass(slots=True)
class AuditReport:
    """What an audit found. `smallest_gap`: between two starts of one slot with a delay; None = there were no two.

    `tightest`: the slot where it was. `ignored`: requests made although the scraper does not ask robots.txt.
    """

    requests: int = 0
    slots: int = 0
    sites: int = 0
    smallest_gap: Millis | None = None
    tightest: tuple[str, str, Millis] | None = None
    most_at_once: int = 0
    answers: dict[int, int] = field(default_factory=dict)
    ignored: int = 0
    breaches: list[BrokenRule] = field(default_factory=list)
    broken: int = 0

    @property
    def clean(self) -> bool:
        """Whether no rule was broken."""
        return not self.broken


def audit(records: Iterable[RequestRecord]) -> AuditReport:
    """Hold all requests against what each was allowed. They may come in any order."""
    report = AuditReport()
    slots: dict[tuple[str, str], RequestLog] = {}
    sites: dict[str, RequestLog] = {}
    for record in records:
        report.requests += 1
        report.answers[record.status] = report.answers.get(record.status, 0) + 1
        report.ignored += record.robots is Robots.IGNORED
        if record.robots is Robots.DISALLOWED:
            _note(report, BrokenRule(Rule.ROBOTS, record.site, record.exit, record.at, 1, 0))
        slots.setdefault((record.site, record.exit), RequestLog()).add(record, record.delay)
        if record.site_delay:
            sites.setdefault(record.site, RequestLog()).add(record, record.site_delay)
    report.slots = len(slots)
    report.sites = len({site for site, _ in slots})
    for (site, exit_name), line in slots.items():
        _check_gaps(report, line, Rule.DELAY, site, exit_name)
        _check_crowd(report, line, site, exit_name)
    for site, line in sites.items():
        _check_gaps(report, line, Rule.SITE_DELAY, site, None)
    return report


def _check_gaps(report: AuditReport, line: RequestLog, rule: Rule, site: str, exit_name: str | None) -> None:
    """Each start against the one before. What cannot be known exactly is taken to be as bad as it can be."""
    order = sorted(range(len(line.begun)), key=line.begun.__getitem__)
    for earlier, later in itertools.pairwise(order):
        allowed = line.apart[later]
        if not allowed:
            continue
        gap = line.earliest[later] - line.begun[earlier]
        if rule is Rule.DELAY and exit_name is not None and (report.smallest_gap is None or gap < report.smallest_gap):
            report.smallest_gap, report.tightest = gap, (site, exit_name, allowed)
        if gap < allowed:
            _note(report, BrokenRule(rule, site, exit_name, line.begun[later], gap, allowed))


def _check_crowd(report: AuditReport, line: RequestLog, site: str, exit_name: str) -> None:
    """How many were under way when each began."""
    order = sorted(range(len(line.begun)), key=line.begun.__getitem__)
    under_way: list[int] = []
    for index in order:
        under_way = [end for end in under_way if end > line.begun[index]]
        under_way.append(line.ended[index])
        report.most_at_once = max(report.most_at_once, len(under_way))
        if len(under_way) > line.at_once[index]:
            breach = BrokenRule(
                Rule.CONCURRENCY, site, exit_name, line.begun[index], len(under_way), line.at_once[index]
            )
            _note(report, breach)


def _note(report: AuditReport, breach: BrokenRule) -> None:
    report.broken += 1
    if len(report.breaches) < SHOWN:
        report.breaches.append(breach)

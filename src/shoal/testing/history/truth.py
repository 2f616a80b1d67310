"""I7: counters are the truth. I8: what was accepted survived."""

from __future__ import annotations

from collections.abc import Callable

from shoal.core.outcome import Done, Dropped, Retried
from shoal.testing.history.evidence import Evidence, Findings, differences
from shoal.testing.history.lives import Effect, Ending, Lives
from shoal.testing.history.offers import offers_of


def counters_are_true(evidence: Evidence, lives: Lives) -> Findings:
    """I7: held against what can be read, and against what the events say; calls that were never answered leave room."""
    findings = Findings("I7")
    counters = evidence.run.counters
    _equal(findings, "waiting and leased", counters.remaining, 0)
    _equal(findings, "items", counters.items, len(evidence.items))
    purged = any(call.given.run_id == evidence.run.run_id for call in evidence.history.of("purge_dead"))
    if not purged:
        _equal(findings, "dead", counters.dead, len(evidence.dead))
    seen = lives.by_task.keys() | {letter.task for letter in evidence.dead}
    unseen = counters.expired + counters.cancelled
    if not counters.accepted - unseen <= len(seen) <= counters.accepted:
        findings.breach(f"{counters.accepted} tasks were accepted, and {len(seen)} were granted or are dead letters")
    auto = {name for name, lane in evidence.run.policy.lanes.items() if lane.auto_ack}
    if not auto:
        _between(findings, lives, "done", counters.done, lambda end: isinstance(end.settlement.outcome, Done))
        _between(findings, lives, "dropped", counters.dropped, lambda end: isinstance(end.settlement.outcome, Dropped))
    _between(findings, lives, "retries", counters.retries, lambda end: isinstance(end.settlement.outcome, Retried))
    _between(findings, lives, "requests", counters.requests, lambda end: end.settlement.requests)
    late = sum(ending.effect is Effect.LATE for ending in lives.endings)
    doubtful = sum(ending.effect is Effect.DOUBTFUL for ending in lives.endings)
    if not late <= counters.late <= late + doubtful:
        findings.breach(f"late is {counters.late}; by the events at least {late} and at most {late + doubtful}")
    findings.count("late", counters.late)
    return findings


def _equal(findings: Findings, name: str, counter: int, truth: int) -> None:
    findings.count(name, counter)
    if counter != truth:
        findings.breach(f"{name}: the counter is {counter}, the truth {truth}")


def _between(findings: Findings, lives: Lives, name: str, counter: int, weight: Callable[[Ending], int]) -> None:
    """A counter lies between what certainly happened and what may have happened as well."""
    findings.count(name, counter)
    least = sum(weight(ending) for ending in lives.endings if ending.effect is Effect.STOOD)
    most = least + sum(weight(ending) for ending in lives.endings if ending.effect is Effect.DOUBTFUL)
    if not least <= counter <= most:
        findings.breach(f"{name}: the counter is {counter}; by the events at least {least} and at most {most}")


def accepted_survives(evidence: Evidence, lives: Lives) -> Findings:
    """I8: every URL whose acceptance was acknowledged was granted at some time, once per key; every item whose
    settlement was acknowledged can be read."""
    findings = Findings("I8")
    tasks_of: dict[str, set[int]] = {}
    for life in lives:
        tasks_of.setdefault(life.lease.task.url, set()).add(life.lease.task.id)
    buried = {letter.url for letter in evidence.dead}
    ended_unseen = evidence.run.counters.expired + evidence.run.counters.cancelled
    offers = offers_of(lives)
    missing = [url for url, offer in offers.items() if offer.certain and url not in tasks_of and url not in buried]
    if len(missing) > ended_unseen:
        for url in missing:
            findings.breach(f"{url} was accepted, and never seen again")
    for url in offers:
        if len(tasks_of.get(url, ())) > 1:
            findings.breach(f"{url} was let in {len(tasks_of[url])} times, as tasks {sorted(tasks_of[url])}")
    sure = [
        item
        for ending in lives.endings
        if ending.effect is Effect.STOOD and isinstance(ending.settlement.outcome, Done)
        for item in ending.settlement.outcome.items
    ]
    lost, _ = differences([bytes(item.body) for item in evidence.items], sure)
    for body, number in lost.items():
        findings.breach(f"acknowledged, and not there: {number} of {body.decode()}")
    findings.count("URLs accepted for certain", sum(offer.certain for offer in offers.values()))
    findings.count("items acknowledged", len(sure))
    return findings

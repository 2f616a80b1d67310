"""I6: first come, first served. I9: no site that is due starves."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from itertools import pairwise

from shoal.core.outcome import Snoozed
from shoal.frontier.contract.frontier import Granted
from shoal.testing.history.evidence import Evidence, Findings
from shoal.testing.history.lives import Life, Lives
from shoal.testing.history.offers import OfferedTask, offers_of
from shoal.testing.history.record import RecordedCall

Turn = tuple[OfferedTask, Life]
"""A URL and the first lease of its task."""


def first_come_first_served(evidence: Evidence, lives: Lives) -> Findings:
    """I6, per lane, site and priority, by the first grant of each task: what was retried since is not judged. Where a
    slot may have several leases at once, a grant that nobody heard of excuses those after it."""
    findings = Findings("I6")
    lines: defaultdict[tuple[str, str, int], list[Turn]] = defaultdict(list)
    offers = offers_of(lives)
    for leases in lives.by_task.values():
        task = leases[0].lease.task
        offer = offers.get(task.url)
        if offer is not None and not offer.task.wait:
            lines[task.lane, task.site, task.priority].append((offer, leases[0]))
    claims = [] if evidence.run.policy.concurrency == 1 else lives.doubtful_claims
    compared = 0
    for turns in lines.values():
        compared += _between_batches(findings, turns, claims)
        compared += _within_batches(findings, turns, claims)
    findings.count("lines", len(lines))
    findings.count("tasks compared", compared)
    return findings


def _between_batches(findings: Findings, turns: list[Turn], claims: list[RecordedCall]) -> int:
    """For each task, the one that was granted last among those that were surely accepted before it."""
    by_acceptance = sorted(turns, key=lambda turn: turn[0].latest)
    latest = [offer.latest for offer, _ in by_acceptance]
    last: list[Life] = []
    for _, life in by_acceptance:
        last.append(life if not last or life.grant.at > last[-1].grant.at else last[-1])
    compared = 0
    for offer, life in turns:
        sooner = bisect_right(latest, offer.earliest - 1)
        if sooner:
            compared += 1
            _in_order(findings, last[sooner - 1], life, claims)
    return compared


def _within_batches(findings: Findings, turns: list[Turn], claims: list[RecordedCall]) -> int:
    batches: defaultdict[object, list[Turn]] = defaultdict(list)
    for offer, life in turns:
        if offer.batch is not None:
            batches[offer.batch].append((offer, life))
    compared = 0
    for batch in batches.values():
        batch.sort(key=lambda turn: turn[0].position)
        for (_, before), (_, after) in pairwise(batch):
            compared += 1
            _in_order(findings, before, after, claims)
    return compared


def _in_order(findings: Findings, before: Life, after: Life, claims: list[RecordedCall]) -> None:
    if after.grant.surely_before(before.grant) and not any(claim.at <= before.grant.at for claim in claims):
        findings.breach(f"{after.shown()} was granted before task {before.lease.task.id}, which had come first")


def due_sites_get_their_turn(evidence: Evidence, lives: Lives) -> Findings:
    """I9. While a slot was certainly free and due and had a task to give, no other site of its lane was visited more
    than a few times."""
    findings = Findings("I9")
    offers = offers_of(lives)
    starts = [life.grant.at for life in lives]
    claims = [claim.at for claim in lives.doubtful_claims]
    waits = most = longest = 0
    for leases in lives.by_slot.values() if evidence.run.policy.concurrency == 1 else ():
        for before, after in pairwise(leases):
            offer = offers.get(after.lease.task.url)
            if offer is None or lives.by_task[after.lease.task.id][0] is not after:
                continue
            due = _due(before, offer)
            if due is None or bisect_right(claims, after.grant.at) > bisect_right(claims, before.grant.at):
                continue
            waits += 1
            longest = max(longest, after.grant.at - int(due))
            between = lives.all[bisect_right(starts, due) : bisect_right(starts, after.grant.at)]
            visits = Counter(
                life.lease.task.site
                for life in between
                if life.slot != after.slot
                and life.lease.task.lane == after.lease.task.lane
                and life.grant.surely_before(after.grant)
            )
            for site, number in visits.most_common(1):
                most = max(most, number)
                if number > evidence.limits.overtakes:
                    findings.breach(f"{after.shown()} was due, and {site} was visited {number} times meanwhile")
    findings.count("waits", waits)
    findings.count("longest wait of a due slot in ms", longest)
    findings.count("most visits of another site meanwhile", most)
    return findings


def _due(before: Life, offer: OfferedTask) -> float | None:
    """From when on the slot was certainly free and due, with the offered task waiting; None = cannot be known."""
    stood = before.stood
    if stood is None or stood.call.answered_at is None or offer.task.wait:
        return None
    due = max(stood.call.answered_at, offer.latest)
    if stood.settlement.started_at is not None:
        delay = max(before.lease.delay, stood.settlement.crawl_delay or 0)
        due = max(due, stood.settlement.started_at + delay)
    if isinstance(stood.settlement.outcome, Snoozed):
        granted = stood.call.answer
        assert isinstance(granted, Granted)
        due = max(due, granted.now + stood.settlement.outcome.wait)
    return due if due < float("inf") else None

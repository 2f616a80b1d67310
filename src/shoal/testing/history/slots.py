"""I3: never more leases of a slot than allowed. I4: never two starts of a slot too close."""

from __future__ import annotations

import math
from itertools import pairwise

from shoal.core.clock import Millis
from shoal.core.outcome import Snoozed
from shoal.frontier.contract.frontier import Granted
from shoal.testing.access_log import AccessLog
from shoal.testing.history.evidence import Evidence, Findings
from shoal.testing.history.lives import Life, Lives


def few_leases_per_slot(evidence: Evidence, lives: Lives) -> Findings:
    """I3, by those stretches of each lease in which it certainly lived; and by what the target had to answer at once,
    which has to break off where whoever asked has left."""
    findings = Findings("I3")
    most = 0
    for (site, way_out), leases in lives.by_slot.items():
        changes: list[tuple[int, int]] = []
        for life in leases:
            since, until = life.surely_lives
            if since < until:
                changes += [(since, 1), (until, -1)]
        living = 0
        for moment, change in sorted(changes):  # at one moment, ends come before beginnings
            living += change
            most = max(most, living)
            if change > 0 and living > evidence.run.policy.concurrency:
                findings.breach(f"{site} by {way_out} had {living} live leases at {moment}")
    findings.count("slots", len(lives.by_slot))
    findings.count("most live leases of one", most)
    if evidence.target is not None:
        at_once = evidence.target.most_at_once(blur=evidence.limits.hang_up / 1000)
        findings.count("most requests of one at once", at_once)
        if at_once > evidence.run.policy.concurrency:
            findings.breach(f"the target had {at_once} requests of one slot to answer at once")
    return findings


def starts_keep_the_delay(evidence: Evidence, lives: Lives) -> Findings:
    """I4: as the target saw it; and as the frontier granted it, where the end of the lease before is known, or that it
    had none while its owner lived."""
    findings = Findings("I4")
    if evidence.target is not None:
        _seen_by_the_target(evidence.target, evidence.run.policy.delay, findings)
    compared = guarded = 0
    for life in lives:
        stood = life.stood
        started = None if stood is None else stood.settlement.started_at
        if started is not None and started < life.lease.start_at:
            findings.breach(f"{life.shown()} was started before its time")
    if evidence.run.policy.concurrency == 1:
        last_calls = {call.process: call.at for call in evidence.history.calls}
        for leases in lives.by_slot.values():
            for before, after in pairwise(leases):
                compared += _granted_in_time(findings, before, after)
                if before.lost_alive(after, last_calls):
                    guarded += 1
                    _granted_after_the_lost(findings, before, after, evidence.run.policy.hard_timeout)
    findings.count("pairs of grants", compared)
    findings.count("slots taken over from the living", guarded)
    return findings


def _seen_by_the_target(target: AccessLog, delay: Millis, findings: Findings) -> None:
    findings.count("requests", len(target))
    findings.count("smallest gap in s", target.smallest_gap() if math.isfinite(target.smallest_gap()) else 0.0)
    for slot, gaps in target.gaps().items():
        for gap in gaps:
            if round(gap * 1000, 3) < delay:
                findings.breach(f"{slot}: two starts {gap * 1000:.1f} ms apart, {delay} ms is allowed")


def _granted_in_time(findings: Findings, before: Life, after: Life) -> bool:
    """Whether the two could be compared."""
    stood = before.stood
    if stood is None or not (stood.call is after.grant or stood.call.surely_before(after.grant)):
        return False
    settlement, granted = stood.settlement, stood.call.answer
    assert isinstance(granted, Granted)
    earliest = 0
    if settlement.started_at is not None:
        earliest = settlement.started_at + after.lease.delay
    if isinstance(settlement.outcome, Snoozed) and settlement.outcome.wait:
        assert stood.call.answered_at is not None
        settled_after = granted.now - (stood.call.answered_at - stood.call.at)
        earliest = max(earliest, settled_after + settlement.outcome.wait)
    if after.lease.start_at < earliest:
        early = earliest - after.lease.start_at
        findings.breach(f"{after.shown()} may start {early} ms too soon after task {before.lease.task.id}")
    return True


def _granted_after_the_lost(findings: Findings, before: Life, after: Life, hard_timeout: Millis) -> None:
    """What its owner may have started before the lease ran out must have ended by now."""
    pace = min(before.lease.delay, after.lease.delay)
    early = before.lives_until() + hard_timeout + pace - after.lease.start_at
    if early > 0:
        findings.breach(f"{after.shown()} may start {early} ms too soon after task {before.lease.task.id} was lost")

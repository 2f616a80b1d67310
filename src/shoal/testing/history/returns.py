"""I5: what a lost worker held comes back."""

from __future__ import annotations

from shoal.core.clock import Millis, Moment
from shoal.testing.history.evidence import Evidence, Findings
from shoal.testing.history.lives import Life, Lives


def lost_tasks_come_back(evidence: Evidence, lives: Lives) -> Findings:
    """I5. Of every lease that was certainly not settled: the task, or where one slot has one lease, the slot, is
    granted again in time. That is the time of the lease, of one sweep, and of a request that may still be out."""
    findings = Findings("I5")
    policy, limits = evidence.run.policy, evidence.limits
    bound = policy.hard_timeout + limits.sweep + limits.slack
    buried = {letter.task for letter in evidence.dead}
    lost = 0
    slowest: Millis = 0
    for life in lives:
        if life.settled_perhaps or life.lease.task.id in buried:
            continue
        lost += 1
        back = _granted_again(evidence, lives, life)
        if back is None:
            findings.breach(f"{life.shown()} was lost, and never came back")
            continue
        took = back - life.last_sign
        away = evidence.history.store_away(life.last_sign, back)
        slowest = max(slowest, took - away)
        if took - away > life.length + life.lease.delay + bound:
            findings.breach(f"{life.shown()} was lost, and came back {took} ms after its last sign of life")
    findings.count("leases lost", lost)
    findings.count("slowest return in ms", slowest)
    return findings


def _granted_again(evidence: Evidence, lives: Lives, life: Life) -> Moment | None:
    same = lives.by_slot[life.slot] if evidence.run.policy.concurrency == 1 else lives.by_task[life.lease.task.id]
    later = [other.grant.at for other in same if life.grant.surely_before(other.grant)]
    return min(later, default=None)

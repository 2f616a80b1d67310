"""I10: bounded. I11: results live as long as promised."""

from __future__ import annotations

from shoal.testing.history.evidence import Evidence, Findings
from shoal.testing.history.lives import Lives


def all_is_bounded(evidence: Evidence, lives: Lives) -> Findings:
    """I10: nobody is given more than asked for, and at rest nothing is left lying about."""
    findings = Findings("I10")
    asked = 0
    for call in lives.history.of("exchange"):
        if not call.doubtful:
            asked += 1
            if len(call.answer.leases) > call.given.want:
                findings.breach(f"{len(call.answer.leases)} leases were granted where {call.given.want} were wanted")
    findings.count("exchanges", asked)
    for rest in evidence.rests:
        findings.count(rest.name, rest.found)
        if rest.found > rest.most:
            findings.breach(f"{rest.name}: {rest.found} at rest, at most {rest.most} is allowed")
    return findings


def results_live_as_long_as_promised(evidence: Evidence, _lives: Lives) -> Findings:
    """I11: whenever somebody looked, all items were there until their time, and none after it and a sweep."""
    findings = Findings("I11")
    run = evidence.run
    ttl, total = run.policy.results_ttl, run.counters.items
    before = after = 0
    for sighting in evidence.sightings if run.ended_at is not None else ():
        over = None if ttl is None or run.ended_at is None else run.ended_at + ttl
        if over is None or sighting.until < over:
            before += 1
            if sighting.items != total:
                findings.breach(f"{sighting.items} of {total} items were left before their time was over")
        elif sighting.swept_at is not None and sighting.swept_at >= over:
            after += 1
            if sighting.items:
                findings.breach(f"{sighting.items} items were left after their time")
    findings.count("looks before the end of their time", before)
    findings.count("looks after it", after)
    return findings

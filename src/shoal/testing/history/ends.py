"""I1: every task ends once. I2: every lease is settled once, and only while it stands."""

from __future__ import annotations

from shoal.core.task import RunState
from shoal.frontier.contract.frontier import Run
from shoal.testing.history.evidence import Evidence, Findings, differences
from shoal.testing.history.lives import Effect, Ending, Life, Lives


def each_task_ends_once(evidence: Evidence, lives: Lives) -> Findings:
    """I1. Also: the items are those of an undisturbed run, where those are known."""
    findings = Findings("I1")
    run = evidence.run
    if run.state is not RunState.FINISHED:
        findings.breach(f"the run is {run.state.value}, not finished: {run.counters.remaining} tasks have not ended")
    requeued = any(call.given.run_id == run.run_id for call in evidence.history.of("requeue_dead"))
    buried = {letter.task for letter in evidence.dead}
    unended = 0
    for task, leases in lives.by_task.items():
        finals = [end for life in leases for end in life.endings if end.final and end.effect is Effect.STOOD]
        if not requeued:
            _once(findings, leases, finals)
        may_have_ended = any(end.final and end.effect is not Effect.LATE for life in leases for end in life.endings)
        if not (may_have_ended or task in buried or _ends_with_its_claim(run, leases)):
            unended += 1
            if unended > run.counters.expired + run.counters.cancelled:
                findings.breach(f"{leases[-1].shown()} never ended")
    findings.count("tasks", len(lives.by_task))
    _compare_items(evidence, findings)
    return findings


def _once(findings: Findings, leases: list[Life], finals: list[Ending]) -> None:
    if len(finals) > 1:
        kinds = ", ".join(type(final.settlement.outcome).__name__ for final in finals)
        findings.breach(f"{leases[0].shown()} ended {len(finals)} times: {kinds}")
    for life in leases:
        if any(final.call.surely_before(life.grant) for final in finals):
            findings.breach(f"{life.shown()} was granted after its task had ended")


def _ends_with_its_claim(run: Run, leases: list[Life]) -> bool:
    lane = run.policy.lanes.get(leases[0].lease.task.lane)
    return lane is not None and lane.auto_ack


def _compare_items(evidence: Evidence, findings: Findings) -> None:
    findings.count("items", len(evidence.items))
    if evidence.expected is None:
        return
    missing, extra = differences([bytes(item.body) for item in evidence.items], evidence.expected)
    for body, number in missing.items():
        findings.breach(f"lost: {number} of {body.decode()}")
    for body, number in extra.items():
        findings.breach(f"too often: {number} of {body.decode()}")
    findings.count("items of an undisturbed run", len(evidence.expected))


def each_lease_is_settled_once(evidence: Evidence, lives: Lives) -> Findings:
    """I2. A settlement counts once, by the holder of the token, while nobody else has the task; and nobody loses a
    lease that cannot have run out."""
    findings = Findings("I2")
    late = 0
    for token in lives.twice_granted:
        findings.breach(f"the token {token} was granted twice")
    for ending in lives.strangers:
        if ending.effect is Effect.STOOD:
            findings.breach(f"task {ending.settlement.task} was settled with a token that nobody was given")
    for life in lives:
        stood = [ending for ending in life.endings if ending.effect is Effect.STOOD]
        if len(stood) > 1:
            findings.breach(f"{life.shown()} was settled {len(stood)} times")
        for ending in stood:
            _by_its_holder(findings, life, ending, lives.by_task[life.lease.task.id])
        for ending in life.endings:
            if ending.effect is Effect.LATE:
                late += 1
                _for_a_reason(findings, life, ending)
    stood_in_all = sum(ending.effect is Effect.STOOD for ending in lives.endings)
    findings.count("leases", len(lives.all))
    findings.count("settled", stood_in_all)
    findings.count("late", late)
    findings.count("doubtful", len(lives.endings) - stood_in_all - late)
    return findings


def _by_its_holder(findings: Findings, life: Life, ending: Ending, of_task: list[Life]) -> None:
    for other in of_task:
        newer = other.lease.claimed_at > life.lease.claimed_at
        if newer and other.grant.surely_before(ending.call):
            findings.breach(f"{life.shown()} was settled after the task had gone to lease {other.lease.token}")


def _for_a_reason(findings: Findings, life: Life, ending: Ending) -> None:
    tried_before = any(other.call.at <= ending.call.at and other is not ending for other in life.endings)
    assert ending.call.answered_at is not None
    if not tried_before and ending.call.answered_at < life.lives_until(ending.call):
        findings.breach(f"{life.shown()} was refused as late, though it cannot have run out")

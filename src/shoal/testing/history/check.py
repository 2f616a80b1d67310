"""All rules, held against one run."""

from __future__ import annotations

from collections.abc import Callable

from shoal.testing.history.bounds import all_is_bounded, results_live_as_long_as_promised
from shoal.testing.history.ends import each_lease_is_settled_once, each_task_ends_once
from shoal.testing.history.evidence import Evidence, Findings, Verdict
from shoal.testing.history.fairness import due_sites_get_their_turn, first_come_first_served
from shoal.testing.history.lives import Lives
from shoal.testing.history.returns import lost_tasks_come_back
from shoal.testing.history.slots import few_leases_per_slot, starts_keep_the_delay
from shoal.testing.history.truth import accepted_survives, counters_are_true

Rule = Callable[[Evidence, Lives], Findings]

RULES: tuple[Rule, ...] = (
    each_task_ends_once,
    each_lease_is_settled_once,
    few_leases_per_slot,
    starts_keep_the_delay,
    lost_tasks_come_back,
    first_come_first_served,
    counters_are_true,
    accepted_survives,
    due_sites_get_their_turn,
    all_is_bounded,
    results_live_as_long_as_promised,
)
"""I1 to I11."""


def check(evidence: Evidence) -> Verdict:
    """Hold the evidence against every rule. Reads nothing and changes nothing."""
    lives = Lives(evidence.history, evidence.run.run_id)
    return Verdict([_disturbances(evidence), *(rule(evidence, lives) for rule in RULES)])


def _disturbances(evidence: Evidence) -> Findings:
    """What was done to the run: no rule, but what the others are worth depends on it."""
    findings = Findings("done")
    kinds = [each.kind for each in evidence.history.disturbances]
    for kind in sorted(set(kinds)):
        findings.count(kind, kinds.count(kind))
    findings.count("processes", evidence.history.processes)
    findings.count("calls", len(evidence.history.calls))
    findings.count("never answered", sum(call.doubtful for call in evidence.history.calls))
    findings.count("torn lines", evidence.history.torn)
    return findings

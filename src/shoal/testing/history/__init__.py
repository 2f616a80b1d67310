"""What happened, from the event log of a run and the access log of its target, held against the rules I1-I11.

    evidence = Evidence(History.read("events"), AccessLog.read("access.jsonl"), run, items, dead)
    verdict = check(evidence)
    print(verdict.text())
    assert not verdict.breaches

The log is written by any process whose setting `events` names a folder (`shoal.frontier.recording`). The checker is
sound: it complains only about what cannot have been right, whatever became of calls that were never answered. It
counts what it could hold against each rule, so that a proof about nothing can be told from a proof.
"""

from shoal.testing.history.check import check
from shoal.testing.history.evidence import Breach, Evidence, Limits, Rest, Sighting, Verdict
from shoal.testing.history.record import Disturbance, DisturbanceLog, History, RecordedCall

__all__ = [
    "Breach",
    "Disturbance",
    "DisturbanceLog",
    "Evidence",
    "History",
    "Limits",
    "RecordedCall",
    "Rest",
    "Sighting",
    "Verdict",
    "check",
]

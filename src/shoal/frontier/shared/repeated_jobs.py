"""Jobs that come twice in one batch: the first of them speaks for the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from shoal.frontier.contract.jobs import Admission, NewJob, Submitted

Answers = Callable[[Sequence[Submitted]], list[Submitted]]


def apart_from_repeats(jobs: Sequence[NewJob]) -> tuple[list[NewJob], Answers]:
    """Those that differ in id and in owner and key, and what makes the answers to all from the answers to those.

    One that repeats another gets its answer: repeated, and without cost; or limited, if that one was.
    """
    different: list[NewJob] = []
    speaks: dict[str | tuple[str, str], int] = {}
    speaker: list[int] = []
    for job in jobs:
        own_key = None if job.key is None else (job.owner, job.key)
        place = speaks.get(job.run.run_id)
        if place is None and own_key is not None:
            place = speaks.get(own_key)
        if place is None:
            place = len(different)
            different.append(job)
            speaks[job.run.run_id] = place
            if own_key is not None:
                speaks[own_key] = place
        speaker.append(place)

    def answers(found: Sequence[Submitted]) -> list[Submitted]:
        return [
            found[place] if job is different[place] else _repeated(found[place], job)
            for place, job in zip(speaker, jobs, strict=True)
        ]

    return different, answers


def _repeated(first: Submitted, job: NewJob) -> Submitted:
    if first.admission is Admission.LIMITED:
        return msgspec.structs.replace(first, job_id=job.run.run_id)
    return Submitted(first.job_id, Admission.REPEATED, first.position, first.fingerprint)

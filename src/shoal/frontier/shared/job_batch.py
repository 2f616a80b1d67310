"""Jobs that are submitted together: what they have in common is sent once."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.frontier.contract.jobs import NewJob


def kinds_of(jobs: Sequence[NewJob]) -> tuple[list[NewJob], list[int]]:
    """One job for each kind of run among these (scraper, mode, queue and policy), and of which kind each is, from 1."""
    kinds: dict[tuple[object, ...], int] = {}
    examples: list[NewJob] = []
    numbers: list[int] = []
    for job in jobs:
        run = job.run
        kind = (run.scraper, run.mode, run.queue or run.run_id, id(run.policy))
        if kind not in kinds:
            examples.append(job)
            kinds[kind] = len(examples)
        numbers.append(kinds[kind])
    return examples, numbers


def groups_of(job: NewJob) -> list[str]:
    """The groups of its tasks, each once, in their order."""
    return list(dict.fromkeys(task.extra.group for task in job.tasks if task.extra.group))

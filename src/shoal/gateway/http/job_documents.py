"""Jobs as web clients see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.core.clock import iso
from shoal.core.url import without_credentials
from shoal.frontier.contract.jobs import JobState, JobStatus
from shoal.frontier.contract.reader import DeadLetter, Item
from shoal.gateway.http.answer import Problem

MORE_ERRORS = 20
"""Failed pages that an answer names at most."""


def progress(status: JobStatus) -> str:
    """How far a job is: by its groups, if it has any; else by its pages."""
    if status.groups:
        total = len(status.groups)
        return f"{max(0, total - status.groups_left)}/{total} items completed"
    counts = status.counters
    return f"{counts.accepted - counts.remaining}/{counts.accepted} pages completed"


def summary(status: JobStatus) -> dict[str, Any]:
    """What is said of a job wherever it is mentioned."""
    return {
        "job_id": status.job_id,
        "status": status.state.value,
        "scraper": status.scraper,
        "progress": progress(status),
        "items": status.counters.items,
        "created_at": iso(status.created_at),
        "ended_at": iso(status.ended_at),
        "expires_at": iso(status.expires_at),
    }


def waiting(status: JobStatus, estimated: float, again: float) -> dict[str, Any]:
    """A job that has not ended."""
    return {
        **summary(status),
        "position": status.position,
        "estimated_time": max(1, round(estimated)),
        "poll_after": again,
    }


def ended(status: JobStatus, items: Sequence[Item] | None, letters: Sequence[DeadLetter]) -> dict[str, Any]:
    """A job that has. `items`: None = too many to be sent at once."""
    document = summary(status)
    if status.state is JobState.FAILED:
        document["error"] = status.error or (letters[0].reason.text if letters else "none of its pages came in time")
    if letters:
        document["errors"] = [
            {"url": without_credentials(each.url), "reason": each.reason.text} for each in letters[:MORE_ERRORS]
        ]
    if items is None:
        document["results"] = None
        document["results_at"] = f"/jobs/{status.job_id}/items"
    else:
        document["results"] = grouped(status.groups, items)
    return document


def grouped(groups: Sequence[str], items: Sequence[Item]) -> Mapping[str, list[msgspec.Raw]] | list[msgspec.Raw]:
    """Items by group, every group that was asked for among them; a plain list where there are no groups."""
    if not groups and all(item.group is None for item in items):
        return [item.body for item in items]
    results: dict[str, list[msgspec.Raw]] = {group: [] for group in groups}
    for item in items:
        results.setdefault(item.group or "", []).append(item.body)
    return results


def etag(status: JobStatus) -> str:
    """Changes when the state or the progress of a job does. Weak: its place in the queue is not part of it."""
    return f'W/"{status.version}"'


def unknown(job_id: str) -> Problem:
    """There is no such job, or none that this client may see."""
    return Problem(404, "unknown-job", "There is no such job.", job_id=job_id, job_status="not_found")


def expired(status: JobStatus) -> Problem:
    """There was such a job."""
    return Problem(
        410, "expired-job", "The results of this job have been deleted.", job_id=status.job_id, job_status="expired"
    )

"""What a run came to, for people and for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from shoal.cli.lanes import FILES_LANE
from shoal.cli.text import count, duration, iso, size

if TYPE_CHECKING:
    from shoal.frontier.protocol import Run


def as_json(run: Run) -> dict[str, Any]:
    """A run for machines. The first five counts have the names that monitoring expects of a queue."""
    counters = run.counters
    named = {"waiting": "pending", "leased": "claimed", "done": "completed", "dead": "failed"}
    counts = {named.get(name, name): number for name, number in msgspec.structs.asdict(counters).items()}
    return {
        "run_id": run.run_id,
        "scraper": run.scraper,
        "mode": run.mode,
        "state": run.state.value,
        "created_at": iso(run.created_at),
        "ended_at": iso(run.ended_at),
        "remaining": counters.remaining,
        **counts,
        "lanes": run.lanes,
    }


def summary(run: Run, *, seconds: float | None = None, output: str | None = None) -> str:
    """The table at the end of `shoal run`. `seconds`: how long it took. `output`: where the items went, if anywhere."""
    counters = run.counters
    rows: list[tuple[str, str]] = [("pages", f"{counters.done:,}"), ("items", f"{counters.items:,}")]
    rows += [
        (word, f"{number:,}{note}")
        for word, number, note in (
            ("retried", counters.retries, ""),
            ("rate limited", counters.snoozes, " times, waited for"),
            ("dropped", counters.dropped, "  (robots.txt, or by the handler)"),
            ("expired", counters.expired, "  (older than their time to live)"),
            ("refused", counters.refused, "  (links that cannot be fetched)"),
            ("cancelled", counters.cancelled, ""),
            ("dead", counters.dead, f"  (see `shoal dead list {run.run_id}`)"),
            ("files waiting", run.lanes.get(FILES_LANE, 0), ""),
            ("not done", counters.remaining - run.lanes.get(FILES_LANE, 0), ""),
        )
        if number > 0
    ]
    rows.append(("received", f"{size(counters.received)} in {count(counters.requests, 'request')}"))
    if seconds is not None:
        pace = f"  ({counters.done / seconds:.1f} pages/s)" if seconds >= 1 and counters.done else ""
        rows.append(("time", f"{duration(seconds)}{pace}"))
    if output is not None:
        rows.append(("output", output))
    width = max(len(word) for word, _ in rows)
    head = f"{run.scraper}  {run.run_id}  {run.state.value}"
    return "\n".join([head, *(f"  {word.ljust(width)}  {value}" for word, value in rows)])

"""What a run came to, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cli.text import count, duration, moment, size
from shoal.lanes import OWN_WORKERS
from shoal.task import RunState

if TYPE_CHECKING:
    from shoal.frontier.protocol import Run


def summary(run: Run, *, seconds: float | None = None, earlier: int = 0, output: str | None = None) -> str:
    """What became of a run, as a table.

    `seconds`: how long it took, None = it is under way; `earlier` pages were done before that.
    `output`: where the items went, if anywhere.
    """
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
            *((f"{lane} waiting", run.lanes.get(lane, 0), "  (for workers of their own)") for lane in OWN_WORKERS),
        )
        if number > 0
    ]
    rows.append(("received", f"{size(counters.received)} in {count(counters.requests, 'request')}"))
    if counters.saved_requests or counters.saved_bytes:
        saved = f"{size(counters.saved_bytes)} and {count(counters.saved_requests, 'request')}"
        rows.append(("saved", f"{saved}  (remembered from earlier visits)"))
    if seconds is not None:
        done = counters.done - earlier
        pace = f"  ({done / seconds:.1f} pages/s)" if seconds >= 1 and done else ""
        rows.append(("time", f"{duration(seconds)}{pace}"))
    if output is not None:
        rows.append(("output", output))
    if seconds is None:
        lanes = ", ".join(f"{lane} {number:,}" for lane, number in sorted(run.lanes.items()))
        rows.append(("started", moment(run.created_at)))
        rows.append(("left", f"{counters.waiting:,} waiting, {counters.leased:,} in work ({lanes or 'no lane'})"))
    width = max(len(word) for word, _ in rows)
    only_others = run.state is RunState.RUNNING and bool(run.lanes) and run.lanes.keys() <= set(OWN_WORKERS)
    head = f"{run.scraper}  {run.run_id}  {'pages finished' if only_others else run.standing}"
    return "\n".join([head, *(f"  {word.ljust(width)}  {value}" for word, value in rows)])

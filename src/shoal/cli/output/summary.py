"""What a run came to, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.cli.output.text import count, duration, moment, size
from shoal.core.lanes import OWN_WORKERS
from shoal.core.task import RunState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shoal.runs.command_line import CommandLine
    from shoal.runs.results import RunResult, RunStatus


def summary(
    run: RunStatus,
    line: CommandLine,
    *,
    result: RunResult | None = None,
    seconds: float | None = None,
    output: str | None = None,
) -> str:
    """What became of a run, as a table.

    `line`: how to find it again. `result`: of the command that worked on it, if there was one.
    `seconds`: how long it took, None = it is under way. `output`: where the items went, if anywhere.
    """
    refused_by = {} if result is None else result.refused_by
    dropped_by = {} if result is None else result.dropped_by
    rows: list[tuple[str, str]] = [("pages", f"{run.completed:,}"), ("items", f"{run.items:,}")]
    rows += [
        (word, f"{number:,}{note}")
        for word, number, note in (
            ("retried", run.retries, ""),
            ("limited or down", run.snoozes, f" time{'s' if run.snoozes > 1 else ''}, waited for"),
            ("dropped", run.dropped, _why(run.dropped, dropped_by, "robots.txt, or by the handler")),
            ("expired", run.expired, "  (older than their time to live)"),
            ("refused", run.refused, _why(run.refused, refused_by, "outside of allow, too deep, or no URL")),
            ("cancelled", run.cancelled, ""),
            ("dead", run.failed, f"  (see `{line.of('dead', 'list', run.run_id)}`)"),
            *((f"{lane} waiting", run.lanes.get(lane, 0), "  (for workers of their own)") for lane in OWN_WORKERS),
        )
        if number > 0
    ]
    rows.append(("received", f"{size(run.received)} in {count(run.requests, 'request')}"))
    if run.saved_requests or run.saved_bytes:
        saved = f"{size(run.saved_bytes)} and {count(run.saved_requests, 'request')}"
        rows.append(("saved", f"{saved}  (remembered from earlier visits)"))
    if seconds is not None:
        done = run.completed - (0 if result is None else result.completed_before)
        pace = f"  ({done / seconds:.1f} pages/s)" if seconds >= 1 and done else ""
        rows.append(("time", f"{duration(seconds)}{pace}"))
    if output is not None:
        rows.append(("output", output))
    if seconds is None:
        lanes = ", ".join(f"{lane} {number:,}" for lane, number in sorted(run.lanes.items()))
        rows.append(("started", moment(run.created_at)))
        rows.append(("left", f"{run.pending:,} waiting, {run.claimed:,} in work ({lanes or 'no lane'})"))
    width = max(len(word) for word, _ in rows)
    only_others = run.state is RunState.RUNNING and bool(run.lanes) and run.lanes.keys() <= set(OWN_WORKERS)
    head = f"{run.scraper}  {run.run_id}  {'pages finished' if only_others else run.standing}"
    return "\n".join([head, *(f"  {word.ljust(width)}  {value}" for word, value in rows)])


def _why(number: int, by: Mapping[str, int], otherwise: str) -> str:
    """What a count is made of, as far as this process has met it; what other processes counted is only a number."""
    if not by:
        return f"  ({otherwise})"
    parts = [f"{count:,} {reason}" if len(by) > 1 or count < number else reason for reason, count in sorted(by.items())]
    elsewhere = number - sum(by.values())
    return f"  ({'; '.join([*parts, *([f'{elsewhere:,} by others or before'] if elsewhere > 0 else [])])})"

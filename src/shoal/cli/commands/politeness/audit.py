"""`shoal audit`: prove that we were polite."""

from hashlib import blake2b
from typing import assert_never

import typer

from shoal.cli.output.exit_codes import say
from shoal.cli.output.text import count, moment, print_json, print_line
from shoal.cli.running.find_store import find_run, with_engine
from shoal.cli.running.shared_options import ConfigOption, EngineOption, JsonOption, RunArgument
from shoal.core.clock import iso
from shoal.frontier.contract.engine import Engine
from shoal.frontier.contract.frontier import Run
from shoal.insight.audit import AuditReport, BrokenRule, RequestRecord, Rule, audit, read, stream_of

PAGE = 500
BROKEN = 1


def audit_(
    run: RunArgument, engine: EngineOption = None, config: ConfigOption = None, as_data: JsonOption = False
) -> None:
    """Hold every request of a run against the delay, the concurrency and the robots rules that it was made under.

    Exit code 1 if a rule was broken, or if there is no log to prove anything by. The log that this reads is kept with
    the run (setting `audit`).

    Example:

        shoal audit last
    """

    async def work(store: Engine) -> tuple[Run, AuditReport]:
        found = await find_run(store.reader, run)
        return found, audit(await _records(store, found.run_id))

    found, report = with_engine(engine, config, work)
    if as_data:
        print_json(_as_json(found, report))
    else:
        _print(found, report)
    if not _is_clean(found, report):
        raise typer.Exit(BROKEN)


def _is_clean(run: Run, report: AuditReport) -> bool:
    """A run that made requests and has none in its log proves nothing."""
    return report.clean and (report.requests > 0 or run.counters.requests == 0)


async def _records(store: Engine, run_id: str) -> list[RequestRecord]:
    """All that is in the log. A note that was sent again because its answer was lost may be there twice."""
    records: list[RequestRecord] = []
    known: set[bytes] = set()
    cursor = 0
    while True:
        page = await store.reader.notes(stream_of(run_id), cursor, PAGE)
        for body in page.bodies:
            mark = blake2b(body, digest_size=16).digest()
            if mark not in known:
                known.add(mark)
                records += read(body)
        if not page.bodies:
            return records
        cursor = page.cursor


def _print(run: Run, report: AuditReport) -> None:
    missing = run.counters.requests - report.requests
    if not report.requests and missing:
        say(
            f"Nothing is proven: the run {run.run_id} has made {count(missing, 'request')}, and none is in its log. "
            "Workers write it unless `audit = false` is set."
        )
        return
    if not report.requests:
        say(f"The run {run.run_id} has made no requests.")
        return
    print_line(
        f"{count(report.requests, 'request')} to {count(report.sites, 'site')} in {count(report.slots, 'slot')}; "
        f"at most {report.most_at_once} at once in one slot."
    )
    if report.tightest is not None and report.smallest_gap is not None:
        site, exit_name, allowed = report.tightest
        print_line(
            f"Smallest gap: {report.smallest_gap} ms at {site} by {exit_name}, where {allowed} ms were asked for."
        )
    if report.ignored:
        print_line(f"{count(report.ignored, 'request')} made without asking robots.txt (obey_robots=False).")
    if missing > 0:
        print_line(f"{count(missing, 'request')} are counted and not in the log.")
    for breach in report.breaches:
        where = breach.site if breach.exit is None else f"{breach.site} by {breach.exit}"
        print_line(f"BROKEN {breach.rule.value}: {where} at {moment(breach.at)}: {_how(breach)}.")
    print_line("No rule was broken." if report.clean else f"{count(report.broken, 'breach', 'breaches')} in all.")


def _how(breach: BrokenRule) -> str:
    match breach.rule:
        case Rule.DELAY | Rule.SITE_DELAY:
            return f"{breach.found} ms apart, not {breach.allowed}"
        case Rule.CONCURRENCY:
            return f"{breach.found} requests at once, not {breach.allowed}"
        case Rule.ROBOTS:
            return "a request that it disallows"
        case rule:
            assert_never(rule)


def _as_json(run: Run, report: AuditReport) -> dict[str, object]:
    return {
        "run_id": run.run_id,
        "requests": report.requests,
        "counted": run.counters.requests,
        "sites": report.sites,
        "slots": report.slots,
        "smallest_gap_ms": report.smallest_gap,
        "most_at_once": report.most_at_once,
        "answers": {str(status): number for status, number in sorted(report.answers.items())},
        "robots_ignored": report.ignored,
        "broken": report.broken,
        "breaches": [
            {
                "rule": breach.rule.value,
                "site": breach.site,
                "exit": breach.exit,
                "at": iso(breach.at),
                "found": breach.found,
                "allowed": breach.allowed,
            }
            for breach in report.breaches
        ],
        "clean": _is_clean(run, report),
    }

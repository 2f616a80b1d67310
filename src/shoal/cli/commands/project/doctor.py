"""`shoal doctor`: is everything in place, and what to do where it is not."""

from typing import Annotated

import typer

from shoal.cli.output.exit_codes import FAILURES
from shoal.cli.output.text import print_json, print_line
from shoal.cli.running import doctor_checks
from shoal.cli.running.doctor_checks import CheckResult, Finding
from shoal.cli.running.shared_options import ConfigOption, EngineOption, JsonOption
from shoal.config.load import load
from shoal.config.settings import Settings
from shoal.runs.event_loop import in_loop


def doctor(
    migrate: Annotated[
        bool, typer.Option("--migrate", help="First make the store, or bring an older one up to this version.")
    ] = False,
    engine: EngineOption = None,
    config: ConfigOption = None,
    as_data: JsonOption = False,
) -> None:
    """Check this machine and these settings: Python, SQLite, engine, disk, contact, limits, exits, optional parts.

    Ends with exit code 1 if something fails. Changes nothing, unless --migrate is given: then the store is made if
    there is none, and one of an older version is brought up to this one. Stop the workers of the older version first.
    Any number of machines may do this at once.

    Example:

        shoal doctor --engine sqlite:////srv/shoal.db
        shoal doctor --migrate
    """
    findings = in_loop(_examine(load(config, {"engine": engine}), migrate=migrate))
    if as_data:
        print_json([_as_json(finding) for finding in findings])
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            print_line(f"{finding.verdict.value:<5} {finding.name:<{width}}  {finding.text}")
            if finding.advice and finding.verdict is not CheckResult.OK:
                print_line(f"{'':<5} {'':<{width}}  -> {finding.advice}")
    if any(finding.verdict is CheckResult.FAIL for finding in findings):
        raise typer.Exit(FAILURES)


async def _examine(settings: Settings, *, migrate: bool) -> list[Finding]:
    migrated = [await doctor_checks.migrate(settings)] if migrate else []
    return [
        *migrated,
        doctor_checks.check_python(),
        doctor_checks.check_sqlite(),
        *await doctor_checks.check_engine(settings),
        *doctor_checks.check_disk(settings),
        doctor_checks.check_contact(settings),
        doctor_checks.check_descriptors(settings),
        *doctor_checks.check_sources(settings),
        doctor_checks.check_tor(settings),
        *doctor_checks.check_environment(),
        *doctor_checks.check_extras(),
    ]


def _as_json(finding: Finding) -> dict[str, str | None]:
    return {
        "check": finding.name,
        "verdict": finding.verdict.value,
        "text": finding.text,
        "advice": finding.advice,
    }

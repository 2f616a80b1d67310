"""Options that several commands share, so that they are spelt and explained the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.core.duration import seconds_from
from shoal.errors import UsageError
from shoal.runs.export.formats.choose import Format
from shoal.runs.export.output import OutputOptions
from shoal.runs.export.places.local_file import IfExists

EngineOption = Annotated[
    str | None,
    typer.Option("--engine", metavar="URL", help="Where everything is kept. Default: setting `engine`."),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Settings file. Default: shoal.toml of this folder, or else of the target's."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no summary.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Log a line for each request, and all else from the level info on.")
]
LogFileOption = Annotated[
    str | None, typer.Option("--log-file", metavar="FILE", help="Add log lines to this file, instead of stderr.")
]
WarcOption = Annotated[
    str | None,
    typer.Option("--warc", metavar="FILE", help="Archive all answers: NAME.warc.gz; if that exists, NAME-2 and so on."),
]
FORMATS = ".jsonl, .json, .csv, .xml, .parquet; .gz, .zst behind"
FormatOption = Annotated[
    Format | None,
    typer.Option("--format", metavar="FORMAT", help="Form of the output, instead of what its suffix says."),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B,…", help="Only these keys, in this order; also _url and _group."),
]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Write files anew that exist already.")]
AppendOption = Annotated[bool, typer.Option("--append", help="Add to files that exist already (.jsonl, .csv).")]
UsedTargetOption = Annotated[
    str | None,
    typer.Option("--target", metavar="TARGET", help="Use headers, delay and exits of this scraper (`file.py:name`)."),
]
RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, the beginning of one, or `last`.")]
OptionalRunArgument = Annotated[
    str | None, typer.Argument(metavar="[RUN]", help="A run's id, the beginning of one, or `last`.")
]
TargetArgument = Annotated[
    str, typer.Argument(metavar="TARGET", help="`file.py`, `file.py:name` or `package.module:name`.")
]
TargetsArgument = Annotated[
    list[str], typer.Argument(metavar="TARGET…", help="`file.py`, `file.py:name` or `package.module:name`.")
]


def output_options(
    format_: Format | None, columns: str | None, *, replace: bool, append: bool, live: bool = False
) -> OutputOptions:
    """What the options beside `-o` mean. Raises UsageError where they contradict each other."""
    if replace and append:
        raise UsageError("An output is written anew (--replace) or added to (--append), not both.")
    if_exists = IfExists.REPLACE if replace else IfExists.APPEND if append else IfExists.REFUSE
    return OutputOptions(format_, _columns(columns), if_exists, live)


def _columns(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) < len(names):
        raise UsageError(f"--columns {text!r} must be names with commas between them, each once.")
    return tuple(names)


def duration(value: str | float) -> float:
    """What an option says, in seconds: `30`, `500ms`, `2h`. The option's `parser`."""
    try:
        return seconds_from(value)
    except ValueError as error:
        raise typer.BadParameter(f"{value!r} is not {error}.") from None


def positive_duration(value: str | float) -> float:
    """The same where 0 makes no sense."""
    try:
        return seconds_from(value, positive=True)
    except ValueError as error:
        raise typer.BadParameter(f"{value!r} is not {error}.") from None

"""Options that several commands share, so that they are spelt and explained the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.core.duration import seconds_from

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

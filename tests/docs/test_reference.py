"""The reference pages say what the code says, all of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from settings_and_cli_reference import cli_page, commands, pages, settings_page
from shoal.config.sections import (
    GuardSettings,
    LaneSettings,
    PoolSettings,
    RouteSettings,
    ScraperSettings,
    ServeSettings,
    TorSettings,
)
from shoal.config.settings import Settings

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", ["cli.md", "settings.md"])
def test_the_committed_page_is_up_to_date(name: str) -> None:
    committed = (FOLDER / name).read_text(encoding="utf-8")
    assert committed == pages()[name], "run `make docs` and commit what it writes"


def test_every_command_is_documented_with_an_example() -> None:
    page = cli_page()
    for path, command in commands():
        assert f"\n## {path}\n" in page
        assert "Example:" in command.help, path
        example = command.help.split("Example:")[1]
        assert f"    {path} " in example or f"    {path}\n" in f"{example}\n", path


def test_every_option_says_what_it_does() -> None:
    page = cli_page()
    for path, command in commands():
        for parameter in command.params:
            assert parameter.help, f"{path} {parameter.name}"
            if parameter.param_type_name == "option" and not parameter.hidden and parameter.name != "help":
                assert f"`{parameter.opts[0]}`" in page, f"{path} {parameter.opts[0]}"


@pytest.mark.parametrize(
    "model",
    [Settings, ScraperSettings, LaneSettings, PoolSettings, RouteSettings, ServeSettings, GuardSettings, TorSettings],
)
def test_every_setting_is_documented_with_its_unit(model: type[Settings]) -> None:
    page = settings_page()
    for name, field in model.model_fields.items():
        assert field.description, name
        if name not in ("scrapers", "lanes", "exits", "route", "serve", "guard", "tor"):
            assert f"| `{name}` | " in page
        if name in ("delay", "site_delay", "timeout", "ttl", "results_ttl"):
            assert "Unit: seconds." in field.description

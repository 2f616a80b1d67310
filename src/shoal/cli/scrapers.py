"""`shoal scrapers`: what a target has in it."""

from typing import Any

from shoal.cli.options import ConfigOption, JsonOption, TargetsArgument
from shoal.cli.overrides import configure
from shoal.cli.settings_file import load
from shoal.cli.target import load_scrapers
from shoal.cli.text import duration, print_json, print_line, table
from shoal.scraper import Scraper


def scrapers(targets: TargetsArgument, config: ConfigOption = None, as_data: JsonOption = False) -> None:
    """List the scrapers of some targets, as they would run with the settings of this folder.

    Example:

        shoal scrapers books.py
    """
    settings = load(config)
    found = load_scrapers(targets)
    for scraper in found:
        configure(scraper, settings)
    if as_data:
        print_json([_as_json(scraper) for scraper in found])
        return
    rows = [
        (
            scraper.name,
            scraper.mode,
            duration(scraper.delay),
            scraper.concurrency,
            ", ".join(sorted(label or "(default)" for label in scraper.handlers)) or "none",
            scraper.input.__name__ if scraper.input else "-",
        )
        for scraper in found
    ]
    print_line(table(("scraper", "mode", "delay", "concurrency", "handlers", "input"), rows))


def _as_json(scraper: Scraper) -> dict[str, Any]:
    return {
        "name": scraper.name,
        "mode": scraper.mode,
        "delay": scraper.delay,
        "site_delay": scraper.site_delay,
        "concurrency": scraper.concurrency,
        "retries": scraper.retries,
        "timeout": scraper.timeout,
        "obey_robots": scraper.obey_robots,
        "lane": scraper.lane,
        "max_depth": scraper.max_depth,
        "handlers": sorted(label or "" for label in scraper.handlers),
        "input": scraper.input.model_json_schema() if scraper.input else None,
    }

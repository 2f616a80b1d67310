"""`shoal scrapers`: what a target has in it."""

from shoal.cli.output.text import exact, print_json, print_line, table
from shoal.cli.running.shared_options import ConfigOption, JsonOption, TargetsArgument
from shoal.cli.running.target_settings import scrapers_for, settings_for
from shoal.runs.results import info_of


def scrapers(targets: TargetsArgument, config: ConfigOption = None, as_data: JsonOption = False) -> None:
    """List the scrapers of some targets, as they would run with the settings of this folder.

    Example:

        shoal scrapers books.py
    """
    settings = settings_for(targets, config)
    found = scrapers_for(targets, settings)
    if as_data:
        print_json([info_of(scraper).as_dict() for scraper in found])
        return
    rows = [
        (
            scraper.name,
            scraper.mode,
            exact(scraper.delay),
            scraper.concurrency,
            ", ".join(sorted(label or "(default)" for label in scraper.handlers)) or "none",
            scraper.input.__name__ if scraper.input else "-",
        )
        for scraper in found
    ]
    print_line(table(("scraper", "mode", "delay", "concurrency", "handlers", "input"), rows))

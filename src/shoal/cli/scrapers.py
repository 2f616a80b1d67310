"""`shoal scrapers`: what a target has in it."""

from shoal import facts
from shoal.cli.options import ConfigOption, JsonOption, TargetsArgument
from shoal.cli.text import duration, print_json, print_line, table
from shoal.overrides import configure
from shoal.settings_file import load
from shoal.target import load_scrapers


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
        print_json([facts.of_scraper(scraper) for scraper in found])
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

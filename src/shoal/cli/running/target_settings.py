"""The settings that hold for some targets, and their scrapers as those settings make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.api.scraper import Scraper
from shoal.cli.output.exit_codes import complain, say
from shoal.config.apply import check_names, configure
from shoal.config.load import FILE_NAME, ignored_file, load
from shoal.config.settings import NO_FILE
from shoal.config.target import folders_of, load_scraper, load_scrapers, names_beside
from shoal.errors import BadTarget

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from shoal.config.settings import Settings

PAGE = "page"
"""The scraper of those who have none."""


def settings_for(
    targets: Sequence[str], config: Path | None, given: Mapping[str, Any] | None = None, *, quiet: bool = False
) -> Settings:
    """Those of `config`, of the current folder, or of the targets' own. Says which, where one might think of others."""
    folders = folders_of(targets)
    settings = load(config, given, folders=folders)
    if config is not None or quiet:
        return settings
    if settings.source not in (FILE_NAME, NO_FILE):
        say(f"Settings: {settings.source}.")
    elif other := ignored_file(settings, folders):
        say(f"Settings: {FILE_NAME} of this folder; {other} is not read (choose it with --config {other}).")
    return settings


def scrapers_for(targets: Sequence[str], settings: Settings, *, quiet: bool = False) -> list[Scraper]:
    """The scrapers of the targets, with the settings laid over them. Raises BadTarget and BadSettings."""
    scrapers = load_scrapers(targets)
    complaints = check_names(settings, _known(targets, scrapers))
    if not quiet:
        for complaint in complaints:
            complain(complaint)
    for scraper in scrapers:
        configure(scraper, settings)
    return scrapers


def used_scraper(target: str | None, config: Path | None) -> tuple[Settings, Scraper]:
    """For commands that fetch a page by the way: a scraper as its settings make it, and these.

    None = one without a mind of its own, named `page`; settings for it are those of `[scrapers.page]`.
    Logs are for errors alone: what becomes of the page is what such a command tells.
    """
    from shoal.cli.output.logs import configure_logs  # noqa: PLC0415 - slow to load

    settings = settings_for([] if target is None else [target], config)
    configure_logs(settings if settings.log_level == "debug" else settings.model_copy(update={"log_level": "error"}))
    if target is not None:
        scraper = load_scraper(target)
        scrapers_for([target], settings)
        return settings, scraper
    scraper = Scraper(PAGE)
    scraper.page(lambda _page: None)
    configure(scraper, settings)
    return settings, scraper


def _known(targets: Sequence[str], scrapers: Sequence[Scraper]) -> list[str]:
    """With those that stand in the same files: settings may be for them."""
    try:
        return names_beside(targets)
    except BadTarget:  # two of one name, of which one was chosen
        return [scraper.name for scraper in scrapers]

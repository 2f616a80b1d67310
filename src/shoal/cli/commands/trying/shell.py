"""`shoal shell`: a page to play with."""

from typing import Annotated

import typer

from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.cli.running.shared_options import ConfigOption
from shoal.cli.running.target_settings import used_scraper
from shoal.errors import UsageError
from shoal.runs.event_loop import in_loop


def shell(
    words: Annotated[
        list[str], typer.Argument(metavar="[TARGET] [URL]", help="A page, a scraper, or both: its page, its options.")
    ],
    plain: Annotated[bool, typer.Option("--plain", help="Python's own prompt, also where IPython is there.")] = False,
    config: ConfigOption = None,
) -> None:
    """Open a Python prompt with a page in it, to find out which selectors fit.

    Without a URL, the page is the first that the scraper starts from. Every fetch is a request as a run would make it,
    with robots.txt and the scraper's delay; nothing is stored.

    Example:

        shoal shell https://books.example/
        shoal shell books.py https://books.example/b/1
    """
    from shoal.cli.running.trying.page_shell import PageShell  # noqa: PLC0415 - brings the whole worker
    from shoal.cli.running.trying.trial import opened_trial  # noqa: PLC0415 - as above

    urls = [word for word in words if "://" in word]
    targets = [word for word in words if "://" not in word]
    if len(urls) > 1 or len(targets) > 1:
        raise UsageError("`shoal shell` takes one TARGET, one URL, or one of each.")
    settings, scraper = used_scraper(targets[0] if targets else None, config)
    with opened_trial(settings, scraper) as trial:
        prompt = PageShell(trial, scraper)
        first = Request(urls[0]) if urls else in_loop(_first(scraper))
        if first is not None:
            prompt.fetch(first)
        prompt.interact(plain=plain)


async def _first(scraper: Scraper) -> Request | None:
    """What the scraper begins with; None = that depends on an input, or it begins nowhere."""
    if scraper.input is not None:
        return None
    async for request in scraper.requests_at_start():
        return request
    return None

"""An interactive Python with a page in it: IPython where it is installed, else Python's own, with completion."""

from __future__ import annotations

import code
import sys
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from shoal.api.request import Request
from shoal.cli.output.exit_codes import complain, say
from shoal.config.settings import mask_url
from shoal.runs.event_loop import in_loop

if TYPE_CHECKING:
    from shoal.api.page import Page
    from shoal.api.scraper import Scraper
    from shoal.cli.running.trying.trial import Trial

HINT = """\
page                the page: page.url, page.status, page.headers, page.html, page.json()
css("h1")           nodes of it; also css_first, text, attr, links
xpath("//h1")       the same by XPath
follow("a", to=…)   the requests that this would yield
fetch(url)          another page, at the scraper's pace: a URL, a Request, or one of follow(…)
scraper             the scraper: scraper.handler("detail").function(page) reads the page"""

_OF_THE_PAGE = ("css", "css_first", "xpath", "text", "attr", "links", "follow", "follow_url")


class PageShell:
    """`names`: what the person at the terminal has at hand."""

    def __init__(self, trial: Trial, scraper: Scraper) -> None:
        self._trial = trial
        self.names: dict[str, Any] = {"page": None, "scraper": scraper, "Request": Request, "fetch": self.fetch}
        self.names |= {name: self._delegate(name) for name in _OF_THE_PAGE}

    def fetch(self, what: str | Request | list[Request]) -> Page | None:
        """Fetch a page and make it `page`. None = there was no answer, and a line has said why."""
        request = what[0] if isinstance(what, list) and what else what
        if not isinstance(request, Request):
            request = Request(str(request))
        tried = in_loop(self._trial.fetch(request))
        if tried.reason is not None:
            complain(f"{mask_url(request.url)}: {tried.reason}.")
        if tried.answer is not None:
            self.names["page"] = tried.answer
        return tried.answer

    def interact(self, *, plain: bool) -> None:
        """Until the person leaves. `plain`: Python's own in any case."""
        if not plain and sys.stdin.isatty() and find_spec("IPython") is not None:
            self._ipython()
            return
        with suppress(ImportError):
            import readline  # noqa: PLC0415 - not there on every platform
            import rlcompleter  # noqa: PLC0415 - for this alone

            readline.set_completer(rlcompleter.Completer(self.names).complete)
            readline.parse_and_bind("tab: complete")
        say(self._banner())
        code.interact(banner="", local=self.names, exitmsg="")

    def _ipython(self) -> None:
        from IPython import start_ipython  # noqa: PLC0415 - an extra
        from traitlets.config import Config  # noqa: PLC0415 - comes with it

        config = Config()
        config.TerminalInteractiveShell.banner1 = f"{self._banner()}\n"
        start_ipython(argv=[], user_ns=self.names, config=config)

    def _banner(self) -> str:
        return f"{HINT}\n\n{self.names['page']!r}"

    def _delegate(self, name: str) -> Any:
        def ask(*arguments: Any, **options: Any) -> Any:
            page = self.names["page"]
            if page is None:
                complain("There is no page yet: fetch(url) gets one.")
                return None
            return getattr(page, name)(*arguments, **options)

        ask.__name__ = name
        return ask

"""The scraper, as a user writes it: a name, how to start, how to read pages, how polite to be, how to run."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from shoal.api.allow import Allowed, url_filter
from shoal.api.auth import Auth
from shoal.api.handler import Handler, arguments_of, defined_at, name_of, takes_a_page
from shoal.api.input import parse_input
from shoal.api.options import LaneOptions, OptionCheck
from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.routes import Route, Routes
from shoal.api.sitemap import Sitemap, sitemap_request
from shoal.api.yields import flatten
from shoal.core.clock import SystemClock, millis
from shoal.core.duration import Duration
from shoal.core.lanes import BROWSER_LANE, BULK_LANE, known_lanes
from shoal.core.site_key import SiteKeys
from shoal.core.task import DEFAULT_POOL, REDIRECTS, Extra, Policy
from shoal.core.url import site_of
from shoal.errors import BadScraper

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import BaseModel

    from shoal.runs.run_scraper import Existing, Resume, RunResult

H = TypeVar("H", bound=Callable[[Page], Any])
"""The type of a handler: whatever takes one Page."""

S = TypeVar("S", bound=Callable[..., Any])
"""The type of a @start function, which takes the input or nothing."""

SLACK_SECONDS = 10.0
"""How much longer than `timeout` a request may take to be surely gone: name lookup, a slow close, a busy machine."""

_NAME = re.compile(r"[a-z][a-z0-9_-]*")


class Scraper:
    """One scraper. It holds its own handlers; nothing is registered anywhere else.

    `name`: lower-case letters, digits, `_` and `-`; names the scraper in runs, reports and URLs of the gateway.
    `start`: URLs or Requests to begin with. `sitemaps`: sitemaps to begin with as well: URLs or Sitemaps; True =
    those that the robots.txt of each site it starts at names.
    `input`: a pydantic model; runs of this scraper need an input of that shape, handed to `@x.start`.
    A Duration is a number of seconds or a text such as "500ms", "2s", "10m", "6h", "7d".
    `delay`: least time between two request starts at one site through one exit (1.0).
    `site_delay`: the same over all exits together; 0 = no such limit (0).
    `concurrency`: most requests at once at one site through one exit (1).
    `attempts`: how often a task is tried before it is given up (3).
    `retry_handler_errors`: an exception in a handler counts as an attempt, and the page is fetched again; else it is a
    dead letter at once, and `raise Retry()` asks for another attempt (False).
    `max_same_errors`: a run of which so many pages fail in a handler, at the same line and in the same way, before any
    could be read, is paused; 0 = never (10).
    `timeout`: most time for one request in all (30).
    `mode`: "single" works here and now, "distributed" leaves the work to workers ("single").
    `browser`: pages are opened in a browser (False). `obey_robots`: robots.txt is obeyed (True).
    `exits`: the pool of exits to leave by ("default").
    `cache`: how long an answer is used again; True = 60; None = never (None).
    `every`: how long after a visit a page is visited again, as long as the run goes on (None = never).
    `changes`: what has changed since the last visit is recorded, for `page.unchanged` and `shoal changes`; it is with
    `cache`, `every` or `volatile` too (False). `volatile`: CSS selectors of what changes all the time and does not
    count.
    `site`: what the pace is kept by: each "host", or the registrable "domain" with all its hosts; routes may name sites
    otherwise ("host"). Scrapers that visit the same place should say the same.
    `lane`: where pages wait (None = "browser" with `browser`, else "bulk"). `lanes`: options per lane.
    `max_depth`: most links from the start that a page may be away (None = any). `allow`: where pages may be: host names
    (subdomains included), host/path prefixes, compiled patterns (None = anywhere). `deny`: where they may not be, said
    in the same way. None of these applies to downloads.
    `routes`: rules by host, path or pattern that say where a page waits, how long it is worth fetching, how soon, and
    at what pace, and by which exits; the first that matches decides, and those of the settings come before these.
    `results_ttl`: how long items are kept after the run (None = until deleted).
    `max_bytes`: largest body that is read, after decompression (32 MiB). `headers`: sent with every request.
    `auth`: a pair `("user", "password")` (HTTP Basic) or a `DigestAuth`, for the origins of `start` and for no other;
    or a mapping of hosts to these (https alone, unless it says `http://…`).
    `accept`: statuses besides 2xx whose answers are handed to the handler, as `[404, 410]`; a rate limit stays one
    (429, 503 with Retry-After, and what is `blocked`). `redirects`: they are followed; else they are handed to the
    handler (True). `meta_refresh`: a page that sends its visitors on by `<meta http-equiv="refresh">` within 10 seconds
    is followed like a redirect (False).
    `blocked`: what else means a rate limit, besides 429: statuses (403), and patterns of pages ("are you a robot").
    `max_rate_limits`: a page that is limited so often in a row, while others of its site are answered, is given up (5).
    `site_down_after`: a site that is down costs its pages nothing but time; those that are tried after it was down for
    so long are given up; 0 = sites are not waited for, each page is tried `attempts` times (6 h).
    `adaptive`: a site that grows slow or fails is visited more slowly for a while, never faster than `delay` (False).
    `isolate`: pages are parsed and read in a process that is killed when it takes too long or too much memory (False;
    for pages of web clients always, unless the settings say otherwise).

    Raises BadScraper with one sentence for a value that cannot be used.
    """

    def __init__(
        self,
        name: str,
        *,
        start: str | Request | Iterable[str | Request] = (),
        sitemaps: str | Sitemap | Iterable[str | Sitemap] | bool = (),
        input: type[BaseModel] | None = None,  # noqa: A002 - the word of the API; the builtin is not used here
        delay: Duration = 1.0,
        site_delay: Duration = 0.0,
        concurrency: int = 1,
        attempts: int = 3,
        retry_handler_errors: bool = False,
        max_same_errors: int = 10,
        timeout: Duration = 30.0,
        mode: Literal["single", "distributed"] = "single",
        browser: bool = False,
        obey_robots: bool = True,
        exits: str = DEFAULT_POOL,
        cache: Duration | bool | None = None,
        every: Duration | None = None,
        changes: bool = False,
        volatile: str | Iterable[str] = (),
        site: Literal["host", "domain"] = "host",
        lane: str | None = None,
        lanes: Mapping[str, LaneOptions] | None = None,
        max_depth: int | None = None,
        allow: Iterable[Allowed] | None = None,
        deny: Iterable[Allowed] | None = None,
        routes: Iterable[Route] = (),
        results_ttl: Duration | None = None,
        max_bytes: int = 32 * 1024 * 1024,
        headers: Mapping[str, str] | None = None,
        auth: Auth | None = None,
        accept: Collection[int] = (),
        redirects: bool = True,
        meta_refresh: bool = False,
        blocked: Iterable[int | str] = (),
        max_rate_limits: int = 5,
        site_down_after: Duration = 6 * 3600.0,
        adaptive: bool = False,
        isolate: bool = False,
    ) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadScraper(
                f"A scraper cannot be named {name!r}: use small letters, digits, _ and -, and begin with a letter."
            )
        check = OptionCheck(name)
        self.name = name
        self.start_urls: tuple[str | Request, ...] = check.urls("start", start, (str, Request))
        self.sitemaps = check.sitemaps(sitemaps)
        self.input = check.model(input)
        self.delay = check.seconds("delay", delay)
        self.site_delay = check.seconds("site_delay", site_delay)
        self.concurrency = check.count("concurrency", concurrency, least=1)
        self.attempts = check.count("attempts", attempts, least=1)
        self.retry_handler_errors = check.flag("retry_handler_errors", retry_handler_errors)
        self.max_same_errors = check.count("max_same_errors", max_same_errors, least=0)
        self.timeout = check.seconds("timeout", timeout, positive=True)
        self.mode = check.one_of("mode", mode, ("single", "distributed"))
        self.browser = check.flag("browser", browser)
        self.obey_robots = check.flag("obey_robots", obey_robots)
        self.exits = check.word("exits", exits)
        self.cache = check.cache(cache)
        self.every = None if every is None else check.seconds("every", every, positive=True)
        self.volatile = check.selectors("volatile", volatile)
        self.changes = check.flag("changes", changes)
        self.lanes = check.lanes(lanes)
        self.lane = None if lane is None else check.one_of("lane", lane, known_lanes(self.lanes))
        self.page_lane = self.lane or (BROWSER_LANE if self.browser else BULK_LANE)
        self.max_depth = None if max_depth is None else check.count("max_depth", max_depth, least=0)
        self.allow = None if allow is None and deny is None else url_filter(allow, deny)
        self.site = check.one_of("site", site, ("host", "domain"))
        self.own_routes = check.routes(routes)
        self.routes: Routes | None = None
        self.sites: SiteKeys | None = None
        self.route_by(self.own_routes)
        self.results_ttl = None if results_ttl is None else check.seconds("results_ttl", results_ttl, positive=True)
        self.max_bytes = check.count("max_bytes", max_bytes, least=1)
        self.headers = check.headers(headers)
        self.auth = check.auth(auth, self.start_urls)
        self.accept = check.statuses("accept", accept)
        self.redirects = check.flag("redirects", redirects)
        self.meta_refresh = check.flag("meta_refresh", meta_refresh)
        self.blocked = check.blocked(blocked)
        self.max_rate_limits = check.count("max_rate_limits", max_rate_limits, least=1)
        self.site_down_after = check.seconds("site_down_after", site_down_after)
        self.adaptive = check.flag("adaptive", adaptive)
        self.isolate = check.flag("isolate", isolate)
        self.handlers: dict[str | None, Handler] = {}
        self._start: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return f"<Scraper {self.name!r} with {len(self.handlers)} handlers>"

    # How pages are read

    @overload
    def page(self, label: H, /) -> H: ...

    @overload
    def page(
        self, label: str | None = None, /, *, thread: bool = False, accept: Collection[int] | None = None
    ) -> Callable[[H], H]: ...

    def page(
        self, label: H | str | None = None, /, *, thread: bool = False, accept: Collection[int] | None = None
    ) -> H | Callable[[H], H]:
        """Make a function the handler for a label: `@x.page("detail")`, or the default one: `@x.page`.

        The function takes one Page and is given back unchanged. A label has one handler; a second is refused.
        `thread`: it runs in a thread of its own, because it blocks for long: it computes, or it asks a library that
        knows no `await`. Several run at once; what they share is theirs to guard.
        `accept`: statuses besides 2xx that this handler is given, instead of those of the scraper.
        """
        accepted = None if accept is None else OptionCheck(self.name).statuses("accept", accept)
        if label is None or isinstance(label, str):
            return lambda function: self._add(label, function, thread=thread, accept=accepted)
        return self._add(None, label, thread=thread, accept=accepted)

    def start(self, function: S) -> S:
        """Make a function say how to begin: it yields Requests, URLs or Sitemaps. Given back unchanged.

        A scraper has one. It takes no argument, or the validated input if the scraper has `input=`.
        """
        if not callable(function):
            raise BadScraper(f"Scraper {self.name!r}: @start is put on a function, not on {function!r}.")
        if self._start is not None:
            raise BadScraper(f"Scraper {self.name!r} has two @start functions: {defined_at(self._start)} is the first.")
        least, _ = arguments_of(function)
        if least > (1 if self.input is not None else 0):
            wants = (
                "at most one argument, its input" if self.input is not None else "no argument, as there is no input="
            )
            raise BadScraper(
                f"Scraper {self.name!r}: @start {name_of(function)} ({defined_at(function)}) takes {wants}."
            )
        self._start = function
        return function

    def handler(self, label: str | None) -> Handler:
        """The handler for a label (None = the default). Raises BadScraper, naming the nearest label there is."""
        found = self.handlers.get(label)
        if found is not None:
            return found
        if label is None:
            raise BadScraper(f"Scraper {self.name!r} has no default handler; put @{self.name}.page on a function.")
        known = sorted(known for known in self.handlers if known is not None)
        near = difflib.get_close_matches(label, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(map(repr, known)) or 'no labelled ones'}."
        raise BadScraper(f"Scraper {self.name!r} has no handler {label!r}; {hint}")

    def _add(self, label: str | None, function: H, *, thread: bool, accept: tuple[int, ...] | None) -> H:
        shown = "the default handler" if label is None else f"the handler {label!r}"
        if not callable(function):
            raise BadScraper(f"Scraper {self.name!r}: @page is put on a function, not on {function!r}.")
        if label == "":
            raise BadScraper(f"Scraper {self.name!r}: a label is a word; for the default handler leave it away.")
        if label in self.handlers:
            first = defined_at(self.handlers[label].function)
            raise BadScraper(f"Scraper {self.name!r} has {shown} twice: at {first} and at {defined_at(function)}.")
        least, most = arguments_of(function)
        if not least <= 1 <= most or not takes_a_page(function):
            raise BadScraper(
                f"Scraper {self.name!r}: {shown}, {name_of(function)} ({defined_at(function)}), "
                "must take one argument, the page."
            )
        if thread and (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
            raise BadScraper(
                f"Scraper {self.name!r}: {shown}, {name_of(function)} ({defined_at(function)}), is async and cannot "
                "have thread=True; make it a plain `def`, or leave thread=True away."
            )
        self.handlers[label] = Handler(self.name, label, function, thread, accept)
        return function

    # How it begins

    def parse_input(self, raw: bytes | str | Mapping[str, Any] | None) -> BaseModel | None:
        """An input of a run, validated by the model (None if the scraper has none and none is given).

        Raises BadScraper with one sentence that names the field and the problem.
        """
        return parse_input(self.name, self.input, raw)

    async def requests_at_start(self, input: BaseModel | None = None) -> AsyncIterator[Request]:  # noqa: A002 - see above
        """What a run begins with, one by one: the start URLs, the sitemaps, then what the @start function yields.

        `input`: as `parse_input` gave it. Raises BadScraper for what is neither Request nor URL nor Sitemap.
        """
        for first in self.start_urls:
            yield Request(first) if isinstance(first, str) else first
        now = SystemClock().now()
        for sitemap in () if self.sitemaps is True else self.sitemaps:
            yield sitemap_request(sitemap, now)
        if self._start is None:
            return
        _, most = arguments_of(self._start)
        begin = (
            self._start if self.input is None or most == 0 else partial(self._start, input or self.parse_input(None))
        )
        async for leaf in flatten(begin()):
            if isinstance(leaf, Request):
                yield leaf
            elif isinstance(leaf, str):
                yield Request(leaf)
            elif isinstance(leaf, Sitemap):
                yield sitemap_request(leaf, now)
            elif leaf is not None:
                raise BadScraper(
                    f"Scraper {self.name!r}: @start {name_of(self._start)} ({defined_at(self._start)}) yielded a "
                    f"{type(leaf).__name__}; it yields Requests, URLs and Sitemaps."
                )

    # How it is run

    def run(
        self,
        *,
        urls: Iterable[str] | None = None,
        input: Mapping[str, Any] | bytes | None = None,  # noqa: A002 - see above
        run_id: str | None = None,
        resume: Resume = False,
        output: str | Path | Sequence[str | Path] | None = None,
        if_exists: Existing = "refuse",
        engine: str | None = None,
    ) -> RunResult:
        """Run it here and now, until nothing is left, and answer how it went, with all its `items` in a list.

        For scripts and notebooks, also where a loop is running: then it works in a thread, and this call waits for it.
        The arguments are those of `Orchestrator.start`, which has no list in memory; settings count as they do there.
        """
        from shoal.runs.run_scraper import run_scraper  # noqa: PLC0415 - brings the whole worker: for those who ask

        return run_scraper(
            self,
            urls=urls,
            input=input,
            run_id=run_id,
            resume=resume,
            output=output,
            if_exists=if_exists,
            engine=engine,
        )

    # What it asks of others

    def route_by(self, routes: Sequence[Route]) -> None:
        """Take these routes instead of those it has. Raises BadScraper, naming the route that cannot be used."""
        lanes = known_lanes(self.lanes)
        for number, route in enumerate(routes, start=1):
            try:
                Routes([route], lanes, self.page_lane)
            except ValueError as error:
                raise BadScraper(f"Scraper {self.name!r}: route {number}: {error}.") from None
        self.routes = Routes(routes, lanes, self.page_lane) if routes else None
        self._site_rules = Routes.site_rules(routes, by_domain=self.site == "domain")
        self.sites = None if self._site_rules is None else SiteKeys(self._site_rules)

    @property
    def remembers(self) -> bool:
        """Whether anything is remembered of its pages from visit to visit."""
        return self.changes or self.cache is not None or self.every is not None or bool(self.volatile)

    def allowed(self, url: str) -> bool:
        """Whether a page at this normalised URL is within `allow` and not within `deny`."""
        return self.allow is None or self.allow(url)

    def accepts(self, status: int, handler: str | None, extra: Extra) -> bool:
        """Whether an answer that is not 2xx is for the handler of this label, by what the request says, the handler,
        or the scraper, in this order."""
        if status in REDIRECTS and not (self.redirects if extra.follow is None else extra.follow):
            return True
        found = self.handlers.get(handler)
        own = None if found is None else found.accept
        return status in (extra.accept if extra.accept is not None else self.accept if own is None else own)

    def site_of(self, url: str) -> str:
        """The site of a normalised URL: what politeness is keyed by."""
        return site_of(url) if self.sites is None else self.sites.of(url)

    def policy(self) -> Policy:
        """What a run of this scraper asks of the frontier."""
        hard_timeout = millis(self.timeout + SLACK_SECONDS)
        return Policy(
            delay=millis(self.delay),
            site_delay=millis(self.site_delay),
            concurrency=self.concurrency,
            pool=self.exits,
            lease=max(300_000, 2 * hard_timeout),
            hard_timeout=hard_timeout,
            results_ttl=None if self.results_ttl is None else millis(self.results_ttl),
            lanes=self.lanes,
            sites=self._site_rules,
        )

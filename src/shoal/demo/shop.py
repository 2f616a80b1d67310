"""The demo shop as a web server."""

from __future__ import annotations

import errno
from collections import Counter
from typing import TYPE_CHECKING, Self

from aiohttp import web

from shoal.core.clock import Clock, Millis, SystemClock
from shoal.demo import pages
from shoal.demo.books import BOOKS, DEALS
from shoal.demo.covers import cover
from shoal.demo.grocer import OUT_OF_ORDER, find_products

if TYPE_CHECKING:
    from types import TracebackType

    from aiohttp.typedefs import Handler

DEALS_PAUSE: Millis = 500
"""Time that must pass between two visits to the deals corner."""
RETRY_AFTER = 1
"""Seconds that a visitor who comes sooner is asked to wait."""
_PORTS_TRIED = 100


class DemoShop:
    """The shop, open while the context is. `port` 0 takes any free one; if another is taken, the next free one.

    `visits` counts requests by path, also those that were refused. `clock` times the deals corner.
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, clock: Clock | None = None) -> None:
        self.visits: Counter[str] = Counter()
        self.port = port
        self._host = host
        self._clock = clock or SystemClock()
        self._deals_from = 0.0
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """Where the home page is, with the slash."""
        return f"http://{'127.0.0.1' if self._host == '0.0.0.0' else self._host}:{self.port}/"  # noqa: S104 - only compared

    async def __aenter__(self) -> Self:
        application = web.Application(middlewares=[self._count])
        application.add_routes(
            [
                web.get("/", self._listing),
                web.get(r"/page/{page:[1-9]\d{0,3}}", self._listing),
                web.get("/books/{slug}", self._book),
                web.get(r"/covers/{number:[1-9]\d{0,3}}.png", self._cover),
                web.post("/api/books", self._api),
                web.get("/moved/{slug}", self._moved),
                web.get("/deals/", self._deals),
                web.get("/deals/{slug}", self._deals),
                web.get("/search", self._search),
                web.get("/private/{rest:.*}", self._private),
                web.get("/robots.txt", self._robots),
                web.get("/sitemap.xml", self._sitemap),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=1)
        await self._runner.setup()
        try:
            await self._listen(self._runner)
        except BaseException:
            await self._runner.cleanup()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        last = self.port + _PORTS_TRIED if self.port else 0
        while True:
            try:
                await web.TCPSite(runner, self._host, self.port).start()
            except OSError as error:
                if error.errno != errno.EADDRINUSE or self.port >= min(last, 65535):
                    raise
                self.port += 1
            else:
                self.port = runner.addresses[0][1]
                return

    @web.middleware
    async def _count(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        self.visits[request.path] += 1
        return await handler(request)

    async def _listing(self, request: web.Request) -> web.Response:
        page = int(request.match_info.get("page", "1"))
        if page > pages.LAST_PAGE:
            return _missing()
        return _html(pages.listing_page(page))

    async def _book(self, request: web.Request) -> web.Response:
        found = [book for book in BOOKS if book.slug == request.match_info["slug"]]
        return _html(pages.book_page(found[0])) if found else _missing()

    async def _moved(self, request: web.Request) -> web.Response:
        return web.Response(status=301, headers={"Location": f"/books/{request.match_info['slug']}"})

    async def _api(self, request: web.Request) -> web.Response:
        try:
            asked = await request.json()
            category, page = asked.get("category"), int(asked.get("page", 1))
        except (ValueError, TypeError, AttributeError):
            return web.json_response({"error": 'send an object such as {"category": "Mystery", "page": 1}'}, status=400)
        return web.json_response(pages.books_as_json(category, max(page, 1)))

    async def _cover(self, request: web.Request) -> web.Response:
        number = int(request.match_info["number"])
        return web.Response(body=cover(number), content_type="image/png") if number <= len(BOOKS) else _missing()

    async def _deals(self, request: web.Request) -> web.Response:
        now = self._clock.elapsed()
        if now < self._deals_from:
            page = pages.notice_page("Too fast", "The deals corner is small. Please come back in a second.")
            return _html(page, status=429, headers={"Retry-After": str(RETRY_AFTER)})
        self._deals_from = now + DEALS_PAUSE
        slug = request.match_info.get("slug")
        if slug is None:
            return _html(pages.deals_page())
        found = [book for book in DEALS if book.slug == slug]
        return _html(pages.book_page(found[0], deal=True)) if found else _missing()

    async def _search(self, request: web.Request) -> web.Response:
        query, zipcode = request.query.get("q", "").strip(), request.query.get("zip", "").strip()
        if OUT_OF_ORDER in query.lower():
            return _html(pages.notice_page("I'm a teapot", "This search is out of order."), status=418)
        cards = find_products(query, zipcode) if query else []
        return _html(pages.search_page(query, zipcode, cards))

    async def _private(self, _request: web.Request) -> web.Response:
        return _html(pages.notice_page("Staff only", "robots.txt asked you not to come here."))

    async def _robots(self, request: web.Request) -> web.Response:
        origin = f"{request.scheme}://{request.host}"
        return web.Response(text=f"User-agent: *\nDisallow: /private/\n\nSitemap: {origin}/sitemap.xml\n")

    async def _sitemap(self, request: web.Request) -> web.Response:
        return web.Response(text=pages.sitemap(f"{request.scheme}://{request.host}"), content_type="application/xml")


def _html(page: str, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(text=page, status=status, headers=headers, content_type="text/html", charset="utf-8")


def _missing() -> web.Response:
    return _html(pages.notice_page("Not here", "We have no such page."), status=404)

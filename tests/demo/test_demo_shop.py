"""The demo shop is a real site with every corner that the first crawl needs, and `-- COMMAND` leaves nothing behind."""

from __future__ import annotations

import asyncio
import signal
import socket
import struct
import sys
import zlib
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import aiohttp
import psutil
import pytest
from selectolax.lexbor import LexborHTMLParser

from shoal.demo import DemoShop
from shoal.demo.books import BOOKS, DEALS, deal_price
from shoal.demo.covers import HEIGHT, WIDTH, cover
from shoal.testing.jump_clock import JumpClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
def clock() -> JumpClock:
    return JumpClock()


@pytest.fixture
async def shop(clock: JumpClock) -> AsyncIterator[DemoShop]:
    async with DemoShop(clock=clock) as demo:
        yield demo


class Visitor:
    """Reads pages of one shop."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session, self.url = session, url

    async def page(self, path: str = "") -> LexborHTMLParser:
        async with self.session.get(urljoin(self.url, path)) as response:
            assert response.status == 200
            assert response.headers["Content-Type"] == "text/html; charset=utf-8"
            return LexborHTMLParser(await response.text())

    async def text(self, path: str) -> str:
        async with self.session.get(urljoin(self.url, path)) as response:
            assert response.status == 200
            return await response.text()


@pytest.fixture
async def visitor(shop: DemoShop) -> AsyncIterator[Visitor]:
    async with aiohttp.ClientSession() as session:
        yield Visitor(session, shop.url)


def text(page: LexborHTMLParser, selector: str) -> str:
    node = page.css_first(selector)
    assert node is not None, selector
    return node.text(strip=True)


def links(page: LexborHTMLParser, selector: str) -> list[str]:
    return [str(node.attributes["href"]) for node in page.css(selector)]


async def test_the_listing_leads_to_every_book(visitor: Visitor) -> None:
    found, step = [], ["/"]
    while step:
        page = await visitor.page(step[0])
        found += links(page, "article h3 a")
        step = links(page, "li.next a")
    assert found == [f"/books/{book.slug}" for book in BOOKS]
    assert len(found) == 60


async def test_a_book_has_all_its_parts(visitor: Visitor) -> None:
    book = next(book for book in BOOKS if "&" in book.title)
    page = await visitor.page(f"/books/{book.slug}")
    assert text(page, "h1") == book.title
    assert text(page, ".price") == book.price
    assert text(page, ".stock") == f"In stock: {book.stock}"
    assert text(page, ".category") == book.category
    assert text(page, ".description p") == book.description
    image = page.css_first("img.cover")
    assert image is not None
    assert image.attributes["src"] == f"/covers/{book.number}.png"


async def test_covers_are_real_images_and_each_is_its_own(visitor: Visitor) -> None:
    async with visitor.session.get(urljoin(visitor.url, "/covers/7.png")) as response:
        image = await response.read()
        assert response.content_type == "image/png"
    assert image.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", image[16:24]) == (WIDTH, HEIGHT)
    start = image.index(b"IDAT")
    (size,) = struct.unpack(">I", image[start - 4 : start])
    assert len(zlib.decompress(image[start + 4 : start + 4 + size])) == (WIDTH + 1) * HEIGHT
    assert struct.unpack(">I", image[start + 4 + size : start + 8 + size])[0] == zlib.crc32(
        image[start : start + 4 + size]
    )
    assert len({cover(book.number) for book in BOOKS}) == len(BOOKS)


async def test_robots_and_sitemap(visitor: Visitor) -> None:
    robots = await visitor.text("/robots.txt")
    assert "Disallow: /private/\n" in robots
    assert f"Sitemap: {visitor.url}sitemap.xml\n" in robots
    sitemap = await visitor.text("/sitemap.xml")
    assert all(f"<loc>{visitor.url}books/{book.slug}</loc>" in sitemap for book in BOOKS)
    assert "private" not in sitemap


async def test_there_is_a_link_that_a_polite_crawler_never_follows(shop: DemoShop, visitor: Visitor) -> None:
    (private,) = links(await visitor.page(), "a.private")
    assert private.startswith("/private/")
    assert shop.visits == {"/": 1}
    await visitor.page(private)
    assert shop.visits[private] == 1


async def test_the_deals_corner_limits_its_visitors(visitor: Visitor, clock: JumpClock) -> None:
    (deals,) = links(await visitor.page(), "nav a.deals")
    first, *_ = links(await visitor.page(deals), "article h3 a")
    clock.advance(499)
    async with visitor.session.get(urljoin(visitor.url, first)) as response:
        assert (response.status, response.headers["Retry-After"]) == (429, "1")
    clock.advance(1)
    page = await visitor.page(first)
    assert (text(page, "h1"), text(page, ".price")) == (DEALS[0].title, deal_price(DEALS[0]))


async def test_search_depends_on_query_and_zip(visitor: Visitor) -> None:
    async def cards(query: str) -> list[tuple[str, ...]]:
        page = await visitor.page(f"/search?{query}")
        return [
            tuple(text(LexborHTMLParser(str(card.html)), part) for part in (".title", ".price", ".store", ".distance"))
            for card in page.css("article.card")
        ]

    milk = await cards("q=milk&zip=10001")
    assert milk == await cards("q=milk&zip=10001")
    assert milk != await cards("q=milk&zip=94105")
    assert all("milk" in title and price.startswith("£") and store for title, price, store, _ in milk)
    assert all(distance.endswith(" mi") for *_, distance in milk)
    assert len({distance for *_, store, distance in milk}) == len({store for *_, store, _ in milk}) > 1
    sizes = [len(await cards(f"q=eggs&zip={zipcode}")) for zipcode in range(10001, 10031)]
    assert 6 <= min(sizes) < max(sizes) <= 20
    assert await cards("zip=10001") == []
    assert await cards("q=unicorn&zip=10001") == []
    async with visitor.session.get(urljoin(visitor.url, "/search?q=a+teapot&zip=10001")) as response:
        assert response.status == 418
    assert "<script>" not in await visitor.text("/search?q=<script>&zip=<script>")


@pytest.mark.parametrize("path", ["/books/none", "/page/4", "/page/0", "/covers/61.png", "/nowhere"])
async def test_what_is_not_there(visitor: Visitor, path: str) -> None:
    async with visitor.session.get(urljoin(visitor.url, path)) as response:
        assert response.status == 404


async def test_the_next_port_is_taken_if_one_is_not_free() -> None:
    async with DemoShop() as first, DemoShop(port=first.port) as second:
        assert second.port > first.port
        async with aiohttp.request("GET", second.url) as response:
            assert response.status == 200


async def open_with(*command: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "shoal.demo", "--port", "0", "--", *command),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


FETCH = "import os,urllib.request as u,sys; print(len(u.urlopen(os.environ['SHOAL_DEMO_URL']).read())>999); sys.exit(7)"


@pytest.mark.parametrize(
    ("command", "code", "output"),
    [
        ((sys.executable, "-c", FETCH), 7, b"True\n"),
        (("true",), 0, b""),
        (("sh", "-c", "kill -9 $$"), 137, b""),
        (("/no/such/command",), 127, b""),
        ((), 2, b""),
    ],
)
async def test_a_command_sees_the_shop_and_its_code_is_ours(command: tuple[str, ...], code: int, output: bytes) -> None:
    process = await open_with(*command)
    out, _ = await process.communicate()
    assert (process.returncode, out) == (code, output)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_reaches_the_command_once_and_is_waited_for(number: signal.Signals) -> None:
    script = (
        "import os, signal, sys, urllib.request\n"
        f"signal.pthread_sigmask(signal.SIG_BLOCK, [{int(number)}])\n"
        "print('ready', flush=True)\n"
        f"signal.sigwait([{int(number)}])\n"
        "urllib.request.urlopen(os.environ['SHOAL_DEMO_URL']).read()\n"  # the shop is still open while it drains
        "print('left:', len(signal.sigpending()), flush=True); sys.exit(1)\n"
    )
    process = await open_with(sys.executable, "-c", script)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    assert await process.stdout.read() == b"left: 0\n"
    assert await process.wait() == 1


async def test_nothing_is_left_running() -> None:
    process = await open_with("sh", "-c", "sleep 1000 & echo $! $SHOAL_DEMO_URL")
    out, _ = await process.communicate()  # ends only when all who hold the pipe have ended
    child, url = out.decode().split()
    with suppress(psutil.NoSuchProcess):
        assert psutil.Process(int(child)).status() == psutil.STATUS_ZOMBIE  # dead, and not yet buried by init
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(url.rstrip("/").rsplit(":", 1)[1]))) != 0


async def test_it_serves_until_told_to_stop() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "shoal.demo", "--port", "0"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().split()[-1]
    async with aiohttp.request("GET", url) as response:
        assert response.status == 200
    process.send_signal(signal.SIGINT)
    assert await process.wait() == 0

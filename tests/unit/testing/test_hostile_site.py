"""What the hostile site answers: redirects, refusals, linked pages, robots.txt of every kind."""

from __future__ import annotations

import asyncio
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import aiohttp
import pytest

from shoal.testing.hostile_site import (
    BROKEN_TITLE,
    HostileSite,
    RobotsKind,
    site_item,
    site_links,
    site_path,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


async def test_redirects(site: HostileSite, client: aiohttp.ClientSession) -> None:
    async with client.get(site.url("/redirect/3")) as response:
        assert [hop.status for hop in response.history] == [302, 302, 302]
        assert response.status == 200
    async with client.get(site.url("/redirect-to?url=http://elsewhere.test/&status=308"), allow_redirects=False) as to:
        assert (to.status, to.headers["Location"]) == (308, "http://elsewhere.test/")
    with pytest.raises(aiohttp.TooManyRedirects):
        await client.get(site.url("/redirect-loop"))
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as keeper:
        async with keeper.get(site.url("/redirect-cookie")) as response:
            assert "welcome back" in await response.text()
        await keeper.get(site.url("/cookies/set?a=1"))
        async with keeper.get(site.url("/cookies/echo")) as response:
            assert await response.json() == {"visited": "yes", "a": "1"}
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as forgetful:
        with pytest.raises(aiohttp.TooManyRedirects):
            await forgetful.get(site.url("/redirect-cookie"))


async def test_retry_after_as_a_date(site: HostileSite, client: aiohttp.ClientSession) -> None:
    before = time.time()
    async with client.get(site.url("/429/date/30")) as response:
        assert response.status == 429
        assert before + 30 <= parsedate_to_datetime(response.headers["Retry-After"]).timestamp() <= time.time() + 31


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/flaky/2/a", [500, 500, 200, 200]),
        ("/flaky/0/b", [200, 200]),
        ("/429/first/1/0/c", [429, 200, 200]),
        ("/503/first/2/0/c", [503, 503, 200]),
    ],
)
async def test_what_passes_in_time(
    site: HostileSite, client: aiohttp.ClientSession, path: str, expected: list[int]
) -> None:
    statuses = []
    for _ in expected:
        async with client.get(site.url(path)) as response:
            statuses.append(response.status)
    assert statuses == expected
    assert [entry.status for entry in site.log] == expected


async def test_the_bucket_refuses_what_is_too_much(site: HostileSite, client: aiohttp.ClientSession) -> None:
    statuses = []
    for index in range(5):
        async with client.get(site.url(f"/limited/0.01/p/{index}")) as response:
            statuses.append((response.status, int(response.headers.get("Retry-After", 0))))
    assert statuses[0] == (200, 0)
    assert [status for status, _ in statuses[1:]] == [429] * 4
    assert all(1 <= wait <= 100 for _, wait in statuses[1:])
    async with client.get(site.url("/limited/50/"), headers={"Host": "another.test"}) as response:
        assert response.status == 200


@pytest.mark.parametrize("size", [1, 2, 11, 250])
def test_every_page_of_a_site_is_reachable(size: int) -> None:
    seen, waiting = {0}, [0]
    while waiting:
        new = set(site_links(size, waiting.pop())) - seen
        seen |= new
        waiting.extend(new)
    assert seen == set(range(size))


async def test_a_page_of_a_site(site: HostileSite, client: aiohttp.ClientSession) -> None:
    async with client.get(site.url(site_path(50, 3))) as response:
        page = await response.text()
    assert f"<h1>{site_item(3).title}</h1>" in page
    assert f'<p class="price">{site_item(3).price}</p>' in page
    assert all(f'href="{site_path(50, other)}"' in page for other in site_links(50, 3))
    async with client.get(site.url("/site/50/p/50")) as response:
        assert response.status == 404


async def test_echo_reads_bodies_of_both_kinds(site: HostileSite, client: aiohttp.ClientSession) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    for body, expected in ((b"plain", "plain"), (pieces(), "one two")):
        async with client.post(site.url("/echo"), data=body, headers={"X-Mark": "7"}) as response:
            seen = await response.json()
        assert (seen["method"], seen["body"], seen["headers"]["x-mark"]) == ("POST", expected, "7")


async def test_pages_of_ones_own(site: HostileSite, client: aiohttp.ClientSession) -> None:
    site.pages["/mine"] = "<h1>Mine</h1>"
    async with client.get(site.url("/mine")) as mine, client.get(site.url("/html/broken")) as broken:
        assert await mine.text() == "<h1>Mine</h1>"
        assert BROKEN_TITLE.replace("&", "&amp") in await broken.text()
    async with client.get(site.url("/json")) as response:
        assert (await response.json())["title"] == "Product"
    async with client.head(site.url("/json")) as response:
        assert (response.headers["Content-Length"], await response.read()) == ("55", b"")


@pytest.mark.parametrize(
    ("kind", "status", "contains"),
    [
        (RobotsKind.NONE, 404, ""),
        (RobotsKind.ALLOW, 200, "Disallow:\n"),
        (RobotsKind.DISALLOW_ALL, 200, "Disallow: /\n"),
        (RobotsKind.DISALLOW_PRIVATE, 200, "Disallow: /private/\n"),
        (RobotsKind.CRAWL_DELAY, 200, "Crawl-delay: 1\n"),
        (RobotsKind.ERROR, 500, ""),
        (RobotsKind.REDIRECT, 200, "Disallow: /private/\n"),
        (RobotsKind.HUGE, 200, "Disallow: /late/\n"),
        (RobotsKind.BOM, 200, "\ufeffUser-agent"),
        (RobotsKind.HTML, 200, "<!doctype html>"),
        ("User-agent: x\n", 200, "User-agent: x\n"),
        (403, 403, ""),
    ],
)
async def test_robots_by_host(
    site: HostileSite, client: aiohttp.ClientSession, kind: RobotsKind | str | int, status: int, contains: str
) -> None:
    site.robots["kind.test"] = kind
    async with client.get(site.url("/robots.txt"), headers={"Host": "KIND.test:80"}) as response:
        assert response.status == status
        assert contains in (await response.read()).decode()
    async with client.get(site.url("/robots.txt"), headers={"Host": "other.test"}) as response:
        assert response.status == 404


async def test_robots_that_never_come(site: HostileSite) -> None:
    site.robots["127.0.0.1"] = RobotsKind.TIMEOUT
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=0.1)) as hasty:
        with pytest.raises(TimeoutError):
            await hasty.get(site.url("/robots.txt"))


async def test_connections_are_kept(site: HostileSite) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    for _ in range(3):
        writer.write(b"GET /empty HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"keep-alive" in await reader.readuntil(b"\r\n\r\n")
    writer.write(b"nonsense\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 400")
    writer.close()
    await writer.wait_closed()

"""Each misbehaviour of the hostile site is really on the wire, and its access log tells the truth."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
import zlib
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import aiohttp
import brotli  # type: ignore[import-untyped]
import pytest

from shoal.testing.access_log import AccessLog, Entry
from shoal.testing.hostile_site import (
    BOMB_MEGABYTES,
    BROKEN_TITLE,
    CHARSET_TEXTS,
    PLAIN,
    TRUE_BODY,
    HostileSite,
    RobotsKind,
    site_item,
    site_links,
    site_path,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def site() -> AsyncIterator[HostileSite]:
    async with HostileSite() as hostile:
        yield hostile


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=20), auto_decompress=False) as session:
        yield session


async def raw(site: HostileSite, path: str, *, at_most: int = 10_000_000) -> tuple[bytes, bytes]:
    """All that the site sends for a GET until it closes (or `at_most`), as head and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: raw.test\r\nConnection: close\r\n\r\n".encode())
        received = b""
        while len(received) < at_most and (piece := await reader.read(65536)):
            received += piece
    finally:
        writer.transport.abort()
    head, _, body = received.partition(b"\r\n\r\n")
    return head, body


@pytest.mark.parametrize(
    ("path", "in_head", "body"),
    [
        ("/drop", b"", b""),
        ("/half", b"chunked", b"400\r\n" + TRUE_BODY),
        ("/length/long", b"Content-Length: %d" % (len(TRUE_BODY) + 1000), TRUE_BODY),
        ("/length/short", b"Content-Length: 7", TRUE_BODY),
        ("/length/garbage", b"Content-Length: banana", TRUE_BODY),
        ("/length/negative", b"Content-Length: -1", TRUE_BODY),
        ("/length/twice", b"Content-Length: 23\r\nContent-Length: 7", TRUE_BODY),
        ("/chunked/good", b"chunked", b"17\r\n" + TRUE_BODY + b"\r\n0\r\n\r\n"),
        ("/chunked/bad", b"chunked", b"17\r\n" + TRUE_BODY + b"\r\nzebra\r\nnot a size\r\n0\r\n\r\n"),
        ("/garbage", b"\x00\x01\x02 220 mail", b""),
        ("/drip/5/1", b"Content-Length: 5", b"....."),
        ("/empty", b"Content-Length: 0", b""),
        ("/status/204", b"204 No Content", b""),
        ("/status/799", b"799 Unusual", b"<h1>status 799</h1>"),
        ("/delay/banana", b"400 Bad Request", None),
        ("/delay", b"400 Bad Request", None),
        ("/delay/first/1/1/a", b"200 OK", b"<h1>after 1 ms</h1>"),
        ("/delay/first/1/1", b"400 Bad Request", None),
        ("/nowhere", b"404 Not Found", None),
        ("/429/bare", b"429 Too Many Requests", b"<h1>too much</h1>"),
        ("/429/seconds/7", b"Retry-After: 7", b"<h1>too much</h1>"),
        ("/503/seconds/3", b"503 Service Unavailable", b"<h1>too much</h1>"),
        ("/big/64", b"Content-Length: 65536", None),
    ],
)
async def test_what_is_on_the_wire(site: HostileSite, path: str, in_head: bytes, body: bytes | None) -> None:
    head, received = await raw(site, path)
    assert in_head in head
    assert bool(head) == bool(in_head)
    assert body is None or received == body


async def test_a_page_may_be_slow_the_first_time_only(site: HostileSite) -> None:
    path = "/delay/first/1/60000/once"
    first = asyncio.create_task(raw(site, path))
    while not len(site.log):  # noqa: ASYNC110 - the log tells nobody that it grows
        await asyncio.sleep(0)
    assert (await raw(site, path))[1] == b"<h1>after 60000 ms</h1>"
    assert not first.done()
    first.cancel()


async def test_reset_is_a_reset(site: HostileSite) -> None:
    with pytest.raises(ConnectionResetError):
        await raw(site, "/reset")


@pytest.mark.parametrize(
    ("path", "marker"), [("/endless", b"and so it goes on"), ("/headers/endless", b"X-Filler-999:")]
)
async def test_what_never_ends(site: HostileSite, path: str, marker: bytes) -> None:
    head, body = await raw(site, path, at_most=5_000_000)
    assert len(head) + len(body) >= 5_000_000
    assert marker in (body or head)
    assert bool(body) == (path == "/endless")  # endless headers never come to a body
    await raw(site, "/empty")  # it still answers others, and has noticed that the client left
    assert [entry.status for entry in site.log] == [200, 200]


async def test_drip_takes_its_time(site: HostileSite) -> None:
    before = time.monotonic()
    await raw(site, "/drip/10/20")
    assert time.monotonic() - before >= 0.2


async def test_delay_ends_when_the_client_leaves(site: HostileSite) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(b"GET /delay/60000 HTTP/1.1\r\nHost: a\r\n\r\n")
    await site.arrivals(1)
    assert site.log.entries[0].finished is None
    writer.close()
    await writer.wait_closed()
    await raw(site, "/empty")
    assert site.log.entries[0].finished is not None
    assert site.log.entries[0].status == 0
    assert await reader.read() == b""


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate"])
async def test_bombs_are_small_until_decoded(site: HostileSite, client: aiohttp.ClientSession, coding: str) -> None:
    async with client.get(site.url(f"/bomb/{coding}")) as response:
        assert response.headers["Content-Encoding"] == coding
        packed = await response.read()
    assert len(packed) < 400_000
    size = 0
    if coding == "br":
        unpack = brotli.Decompressor()
        for start in range(0, len(packed), 100):
            size += len(unpack.process(packed[start : start + 100]))
        assert unpack.is_finished()
    else:
        unzip = zlib.decompressobj(wbits=47)
        while not unzip.eof:
            size += len(unzip.decompress(unzip.unconsumed_tail or packed, 1 << 22))
    assert size == BOMB_MEGABYTES << 20


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate"])
async def test_good_encodings_decode(site: HostileSite, coding: str) -> None:
    async with aiohttp.request("GET", site.url(f"/{coding}")) as response:
        assert response.headers["Content-Encoding"] == coding
        assert await response.read() == PLAIN


async def test_bad_gzip_does_not_decode(site: HostileSite) -> None:
    _, body = await raw(site, "/bad-gzip")
    with pytest.raises(zlib.error):
        zlib.decompress(body, wbits=31)


@pytest.mark.parametrize(
    ("kind", "content_type", "codec", "mark"),
    [
        ("header-latin1", "text/html; charset=ISO-8859-1", "latin-1", b""),
        ("meta-1251", "text/html", "cp1251", b'<meta charset="windows-1251">'),
        ("bom-utf16", "text/html", "utf-16", b"\xff\xfe"),
        ("bom-over-header", "text/html; charset=ISO-8859-1", "utf-8", b"\xef\xbb\xbf"),
        ("wrong-header", "text/html; charset=utf-8", "cp1251", b'<meta charset="windows-1251">'),
        ("missing", "text/html", "utf-8", b""),
        ("nonsense", "text/html; charset=klingon-7", "utf-8", b""),
    ],
)
async def test_charsets(
    site: HostileSite, client: aiohttp.ClientSession, kind: str, content_type: str, codec: str, mark: bytes
) -> None:
    async with client.get(site.url(f"/charset/{kind}")) as response:
        body = await response.read()
        assert response.headers["Content-Type"] == content_type
    assert f"<h1>{CHARSET_TEXTS[kind]}</h1>" in body.decode(codec)
    assert mark in body


def test_every_charset_is_tested() -> None:
    (mark,) = (mark for mark in test_charsets.pytestmark if mark.name == "parametrize")  # type: ignore[attr-defined]
    assert {case[0] for case in mark.args[1]} == set(CHARSET_TEXTS)


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
    async with client.get(site.url("/429/date/30")) as response:
        assert response.status == 429
        assert 29 <= parsedate_to_datetime(response.headers["Retry-After"]).timestamp() - time.time() <= 31


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
        async with client.get(site.url(f"/limited/0.5/p/{index}")) as response:
            statuses.append((response.status, response.headers.get("Retry-After")))
    assert statuses[0] == (200, None)
    assert statuses[1:] == [(429, "2")] * 4
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


async def test_the_log_knows_who_asked_what_and_when() -> None:
    async with HostileSite(host="0.0.0.0") as site:  # noqa: S104  a test of loopback addresses
        connector = aiohttp.TCPConnector(local_addr=("127.0.0.7", 0))
        async with aiohttp.ClientSession(connector=connector, headers={"User-Agent": "shoal-test"}) as client:
            before = time.time()
            await client.get(site.url("/json?q=1", host="127.0.0.9"), headers={"Host": "Shop.test:99"})
            await asyncio.gather(*(client.get(site.url("/delay/30", host="127.0.0.9")) for _ in range(3)))
    first, *others = site.log
    assert (first.peer, first.local, first.host, first.path) == ("127.0.0.7", "127.0.0.9", "shop.test", "/json?q=1")
    assert (first.method, first.status, first.agent, first.overlapped) == ("GET", 200, "shoal-test", False)
    assert first.finished is not None
    assert before <= first.started <= first.finished <= time.time()
    assert all(entry.overlapped for entry in others)
    assert site.log.most_at_once() == 3
    assert site.log.counts() == {"/json?q=1": 1, "/delay/30": 3}
    assert len(site.log.filter("/delay", host="127.0.0.9", peer="127.0.0.7")) == 3
    assert not len(site.log.filter(peer="127.0.0.1"))


def entry(number: int, started: float, finished: float | None, host: str = "a", peer: str = "p") -> Entry:
    return Entry(number, started, peer, "l", "GET", host, "/", "", finished=finished)


def test_gaps_are_per_slot_and_sorted() -> None:
    log = AccessLog(
        [
            entry(0, 10.0, 10.5),
            entry(1, 12.0, 12.5),
            entry(2, 10.1, 12.0, host="b"),
            entry(3, 13.0, None),
            entry(4, 13.0, 13.0, peer="q"),
        ]
    )
    assert log.gaps() == {("a", "p"): [1.0, 2.0], ("b", "p"): [], ("a", "q"): []}
    assert log.smallest_gap() == 1.0
    assert log.smallest_gap(key=lambda entry: entry.host) == 0.0
    assert (log.most_at_once(), log.most_at_once(key=lambda entry: 0)) == (1, 2)
    one_after_the_other = AccessLog([entry(0, 10.0, 11.05), entry(1, 11.0, 12.0)])
    assert [one_after_the_other.most_at_once(blur=blur) for blur in (0.0, 0.04, 0.06)] == [2, 2, 1]
    assert AccessLog().smallest_gap() == float("inf")


async def test_a_killed_site_loses_nothing_that_it_saw(tmp_path: Path, client: aiohttp.ClientSession) -> None:
    file = tmp_path / "access.jsonl"
    for life in (1, 2):
        command = [sys.executable, "-m", "shoal.testing.hostile_site", "--log", str(file), "--robots", "allow"]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        ready, url = (await process.stdout.readline()).decode().split()
        assert ready == "ready"
        async with client.get(f"{url}/robots.txt") as response:
            assert response.status == 200
        async with client.get(f"{url}/drip/1000/1000"):  # its head has come: it is being answered
            process.send_signal(signal.SIGKILL)
            await process.wait()
        log = AccessLog.read(file)
        assert [(seen.path, seen.status) for seen in log] == [("/robots.txt", 200), ("/drip/1000/1000", 0)] * life
        assert log.entries[-1].finished is None
        assert log.torn == life - 1
        with file.open("ab") as torn:
            torn.write(b'{"event":"began","num')
    assert AccessLog.read(file).torn == 2


async def test_the_process_stops_when_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shoal.testing.hostile_site", "--log", str(tmp_path / "log")]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    await process.stdout.readline()
    process.terminate()
    assert await process.wait() == 0
    assert await process.stdout.read() == b""

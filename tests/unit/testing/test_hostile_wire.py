"""Each misbehaviour of the hostile site is really on the wire."""

from __future__ import annotations

import asyncio
import time
import zlib
from typing import TYPE_CHECKING

import aiohttp
import brotli  # type: ignore[import-untyped]
import pytest

from shoal.testing.hostile_site import (
    BOMB_MEGABYTES,
    CHARSET_TEXTS,
    PLAIN,
    TRUE_BODY,
    HostileSite,
)
from support.raw_http import raw

if TYPE_CHECKING:
    pass


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

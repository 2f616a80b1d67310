"""Fetching from servers that send too much, lie, break off, are slow, or are not who they say."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import tracemalloc
import zlib

import brotli  # type: ignore[import-untyped]
import pytest
import trustme

from shoal.core.outcome import Blame
from shoal.fetch.http import HttpFetcher, direct
from shoal.fetch.protocol import Fetch, FetchError
from shoal.testing.hostile_site import PLAIN, TRUE_BODY, HostileSite
from support.fetching import AGENT, CountingGate, answer, answering, failure, get, impatient, open_gate
from support.serving import server

# Encodings and sizes


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate"])
async def test_encodings_are_taken_off(fetcher: HttpFetcher, site: HostileSite, coding: str) -> None:
    response = await fetcher.fetch(Fetch(site.url(f"/{coding}")), open_gate)
    assert response.body == PLAIN
    assert response.received == int(response.headers["Content-Length"]) != len(PLAIN)


LONG = bytes(range(256)) * 4096


@pytest.mark.parametrize(
    ("coding", "body", "expected"),
    [
        ("deflate", zlib.compress(LONG)[2:-4], LONG),
        ("x-gzip", gzip.compress(b"one ", mtime=0) + gzip.compress(b"two", mtime=0), b"one two"),
        ("gzip", gzip.compress(LONG, mtime=0) + b"trailing junk", LONG),
        ("BR", brotli.compress(LONG), LONG),
        ("identity", b"as it is", b"as it is"),
        ("gzip", b"", b""),
    ],
)
async def test_unusual_encodings(fetcher: HttpFetcher, coding: str, body: bytes, expected: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        whole = answer(body, f"Content-Encoding: {coding}")
        start = len(whole) - len(body)
        for piece in (whole[: start + 1], whole[start + 1 :]):  # the first byte of the body comes alone
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)

    async with server(serve) as port:
        response = await get(fetcher, port)
    assert response.body == expected


@pytest.mark.parametrize(
    "fields",
    [
        ("Content-Encoding: gzip, deflate",),
        ("Content-Encoding: gzip", "Content-Encoding: deflate"),
        ("Content-Encoding: identity, gzip,", "content-encoding: ,Deflate"),
    ],
    ids=" | ".join,
)
async def test_several_encodings_in_one_line_or_in_several(fetcher: HttpFetcher, fields: tuple[str, ...]) -> None:
    body = zlib.compress(gzip.compress(LONG, mtime=0))
    async with server(answering(answer(body, *fields))) as port:
        assert (await get(fetcher, port)).body == LONG


@pytest.mark.parametrize(
    "body", [gzip.compress(LONG, mtime=0)[:-1], brotli.compress(LONG)[:-1], zlib.compress(LONG)[:-1], b"x"]
)
async def test_a_compressed_body_without_its_end_is_an_error(fetcher: HttpFetcher, body: bytes) -> None:
    coding = {0x1F: "gzip", 0x78: "deflate", ord("x"): "deflate"}.get(body[0], "br")
    async with server(answering(answer(body, f"Content-Encoding: {coding}"))) as port:
        error = await failure(fetcher, Fetch(f"http://127.0.0.1:{port}/"))
    assert (error.text, error.blame) == (f"{coding} body cut short", Blame.URL)


async def test_damage_and_the_unknown_are_errors(fetcher: HttpFetcher, site: HostileSite) -> None:
    damaged = await failure(fetcher, Fetch(site.url("/bad-gzip")))
    assert (damaged.text, damaged.blame) == ("damaged compressed body", Blame.URL)
    async with server(answering(answer(b"?", "Content-Encoding: zstd"))) as port:
        unknown = await failure(fetcher, Fetch(f"http://127.0.0.1:{port}/"))
    assert (unknown.text, unknown.permanent) == ("unknown content encoding 'zstd'", True)


@pytest.mark.parametrize("path", ["/endless", "/big/2048", "/bomb/gzip", "/bomb/br", "/bomb/deflate"])
async def test_what_is_too_large_is_broken_off(fetcher: HttpFetcher, site: HostileSite, path: str) -> None:
    error = await failure(fetcher, Fetch(site.url(path), max_bytes=2**20))
    assert (error.text, error.blame, error.permanent) == ("body larger than 1 MB", Blame.URL, True)
    assert len(fetcher._exits["direct", False].connector._acquired) == 0


@pytest.mark.parametrize("size", [1000, 1001])
@pytest.mark.parametrize("fields", [("Content-Encoding: identity",), ("Content-Encoding: gzip",), ()])
async def test_the_cap_is_exact(fetcher: HttpFetcher, size: int, fields: tuple[str, ...]) -> None:
    body = b"." * size
    sent = gzip.compress(body, mtime=0) if fields == ("Content-Encoding: gzip",) else body
    async with server(answering(answer(sent, *fields))) as port:
        fetch = Fetch(f"http://127.0.0.1:{port}/", max_bytes=1000)
        if size == 1000:
            assert (await fetcher.fetch(fetch, open_gate)).body == body
        else:
            assert (await failure(fetcher, fetch)).text == "body larger than 1000 bytes"


async def test_compressed_nothing_without_end_is_broken_off(fetcher: HttpFetcher) -> None:
    """Empty blocks decode to nothing, so that only the bytes on the wire tell that it goes on."""
    nothing = b"\0\0\0\xff\xff" * 20_000
    chunk = b"%x\r\n%b\r\n" % (len(nothing), nothing)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: deflate\r\n\r\n")
        writer.write(b"2\r\n\x78\xda\r\n")
        while True:
            writer.write(chunk)
            await writer.drain()

    async with server(serve) as port:
        error = await failure(fetcher, Fetch(f"http://127.0.0.1:{port}/", max_bytes=2**20))
    assert error.text == "body larger than 1 MB"


async def test_gzip_in_very_many_parts_is_refused(fetcher: HttpFetcher) -> None:
    for parts, fits in ((1001, True), (1002, False)):
        async with server(answering(answer(gzip.compress(b"x", mtime=0) * parts, "Content-Encoding: gzip"))) as port:
            if fits:
                assert (await get(fetcher, port)).body == b"x" * parts
            else:
                assert (await failure(fetcher, Fetch(f"http://127.0.0.1:{port}/"))).permanent


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate"])
async def test_a_bomb_takes_no_more_memory_than_the_cap(coding: str) -> None:
    cap = 16 * 2**20
    fetcher = HttpFetcher(AGENT)
    async with HostileSite() as site:
        with pytest.raises(FetchError):  # the site makes its bomb once
            await fetcher.fetch(Fetch(site.url(f"/bomb/{coding}"), max_bytes=1000), open_gate)
        tracemalloc.start()
        with pytest.raises(FetchError, match=r"^body larger than 16 MB$"):
            await fetcher.fetch(Fetch(site.url(f"/bomb/{coding}"), max_bytes=cap), open_gate)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        await fetcher.close()
    assert peak < cap * 1.125 + 2 * 2**20


# Lies and breaks


@pytest.mark.parametrize(
    ("path", "text", "blame"),
    [
        ("/half", "body cut short", Blame.HOST),
        ("/length/long", "body cut short", Blame.HOST),
        ("/chunked/bad", "malformed answer", Blame.URL),
        ("/garbage", "malformed answer", Blame.URL),
        ("/headers/endless", "malformed answer", Blame.URL),
        ("/length/garbage", "malformed answer", Blame.URL),
        ("/length/negative", "malformed answer", Blame.URL),
        ("/length/twice", "malformed answer", Blame.URL),
    ],
)
async def test_what_is_not_http_is_an_error(
    fetcher: HttpFetcher, site: HostileSite, path: str, text: str, blame: Blame
) -> None:
    error = await failure(fetcher, Fetch(site.url(path), timeout=60))
    assert error.text.startswith(text), error.text
    assert (error.blame, len(error.text) < 120) == (blame, True)
    assert (await fetcher.fetch(Fetch(site.url("/chunked/good")), open_gate)).body == TRUE_BODY


async def test_a_header_field_may_be_large_but_not_very(fetcher: HttpFetcher) -> None:
    for size, fits in ((12_000, True), (20_000, False)):
        async with server(answering(answer(b"ok", "X-Large: " + "x" * size))) as port:
            if fits:
                assert (await get(fetcher, port)).body == b"ok"
            else:
                assert (await failure(fetcher, Fetch(f"http://127.0.0.1:{port}/"))).blame is Blame.URL


async def test_leftovers_do_not_reach_the_next_answer(fetcher: HttpFetcher, site: HostileSite) -> None:
    for _ in range(3):
        error = await failure(fetcher, Fetch(site.url("/length/short")))
        assert (error.text.startswith("malformed answer"), error.blame) == (True, Blame.URL)
        assert (await fetcher.fetch(Fetch(site.url("/chunked/good")), open_gate)).body == TRUE_BODY


async def test_a_body_until_the_end_of_the_connection(fetcher: HttpFetcher) -> None:
    async with server(answering(b"HTTP/1.0 200 OK\r\n\r\nold style")) as port:
        assert (await get(fetcher, port)).body == b"old style"


# Time


async def test_the_whole_has_a_time(fetcher: HttpFetcher, site: HostileSite) -> None:
    for path in ("/drip/1000/20", "/delay/60000"):
        error = await failure(fetcher, Fetch(site.url(path), timeout=0.2))
        assert (error.text, error.blame, error.permanent) == ("timed out after 0.2 s", Blame.HOST, False)
    assert len(fetcher._exits["direct", False].connector._acquired) == 0


async def test_the_first_byte_has_a_time(site: HostileSite) -> None:
    async with impatient(first_byte=0.2) as fetcher:
        assert (await failure(fetcher, Fetch(site.url("/delay/60000")))).text == "no data for 0.2 s"
        assert (await fetcher.fetch(Fetch(site.url("/drip/4/80")), open_gate)).body == b"...."


async def test_silence_has_a_time_of_its_own(site: HostileSite) -> None:
    async with impatient(silence=0.2) as fetcher:
        assert (await failure(fetcher, Fetch(site.url("/drip/2/60000")))).text == "no data for 0.2 s"
        assert (await fetcher.fetch(Fetch(site.url("/delay/400")), open_gate)).status == 200


async def test_a_tls_handshake_has_a_time() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    gate = CountingGate()
    async with server(serve) as port, impatient(connect=0.2) as fetcher:
        with pytest.raises(FetchError, match=r"^no connection within 0.2 s$") as caught:
            await fetcher.fetch(Fetch(f"https://127.0.0.1:{port}/"), gate)
    assert (gate.starts, caught.value.blame) == (0, Blame.HOST)


# TLS and names


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def certificate(authority: trustme.CA, name: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    return context


async def test_tls_with_a_known_authority(authority: trustme.CA) -> None:
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    fetcher = HttpFetcher(AGENT, exits=direct(tls=trusting))
    async with server(answering(answer(b"secret")), certificate(authority, "127.0.0.1")) as port:
        response = await fetcher.fetch(Fetch(f"https://127.0.0.1:{port}/"), open_gate)
        await fetcher.close()
    assert response.body == b"secret"


async def test_tls_with_an_unknown_authority(fetcher: HttpFetcher, authority: trustme.CA) -> None:
    async with server(answering(answer(b"secret")), certificate(authority, "127.0.0.1")) as port:
        error = await failure(fetcher, Fetch(f"https://127.0.0.1:{port}/"))
    assert error.text.startswith("TLS certificate not valid: ")
    assert (error.blame, error.permanent) == (Blame.HOST, True)


async def test_tls_with_a_server_that_has_none(fetcher: HttpFetcher) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with server(serve) as port:
        error = await failure(fetcher, Fetch(f"https://127.0.0.1:{port}/"))
    assert error.text.startswith("TLS failed: "), error.text
    assert error.blame is Blame.HOST


async def test_a_host_that_is_not_there(fetcher: HttpFetcher) -> None:
    error = await failure(fetcher, Fetch("http://nowhere.invalid/"))
    assert error.text in ("no such host", "name lookup failed")
    assert error.blame is Blame.HOST

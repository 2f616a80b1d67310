from __future__ import annotations

import asyncio
import gzip
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import brotli  # type: ignore[import-untyped]
import pytest
import trustme

from serving import Serve, server
from shoal.fetch.http import HttpFetcher, Timeouts, direct
from shoal.fetch.protocol import Fetch, FetchError, Response, TooLate
from shoal.outcome import Blame
from shoal.testing.hostile_site import PLAIN, TRUE_BODY, HostileSite

AGENT = "ShoalTest/1.0"


def open_gate() -> None:
    """A gate that lets everything through."""


class CountingGate:
    """Counts the starts; refuses those after the first `allowed`."""

    def __init__(self, allowed: int = 1000) -> None:
        self.starts = 0
        self._allowed = allowed

    def __call__(self) -> None:
        if self.starts == self._allowed:
            raise TooLate
        self.starts += 1


@pytest.fixture
async def fetcher() -> AsyncIterator[HttpFetcher]:
    fetcher = HttpFetcher(AGENT)
    yield fetcher
    await fetcher.close()


@pytest.fixture
async def site() -> AsyncIterator[HostileSite]:
    async with HostileSite() as site:
        yield site


@asynccontextmanager
async def impatient(**phases: float) -> AsyncIterator[HttpFetcher]:
    fetcher = HttpFetcher(AGENT, timeouts=Timeouts(**phases))
    try:
        yield fetcher
    finally:
        await fetcher.close()


def answering(*answers: bytes, heads: list[bytes] | None = None) -> Serve:
    """Each connection gets these answers, one for each request, and then the end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            head = await reader.readuntil(b"\r\n\r\n")
            if heads is not None:
                heads.append(head)
            writer.write(answer)
            await writer.drain()

    return serve


def answer(body: bytes, *fields: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *fields, "", ""]
    return "\r\n".join(lines).encode() + body


async def get(fetcher: HttpFetcher, port: int, path: str = "/") -> Response:
    return await fetcher.fetch(Fetch(f"http://127.0.0.1:{port}{path}", timeout=5), open_gate)


async def failure(fetcher: HttpFetcher, fetch: Fetch) -> FetchError:
    with pytest.raises(FetchError) as caught:
        await fetcher.fetch(fetch, open_gate)
    return caught.value


# Ordinary answers


async def test_a_page_comes_back_whole(fetcher: HttpFetcher, site: HostileSite) -> None:
    site.pages["/page?x=1#part".partition("?")[0]] = b"<p>hello"
    url = site.url("/page?x=1#part")
    response = await fetcher.fetch(Fetch(url), open_gate)
    assert (response.url, response.status, response.body, response.received) == (url, 200, b"<p>hello", 8)
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert [(entry.path, entry.agent) for entry in site.log] == [("/page?x=1", AGENT)]


@pytest.mark.parametrize("path", ["/a[1]|x", "/%7Euser/%2F", "/?q=a+b%20c", "/caf%C3%A9"])
async def test_a_normal_url_is_sent_to_the_letter(fetcher: HttpFetcher, path: str) -> None:
    heads: list[bytes] = []
    async with server(answering(answer(b"ok"), heads=heads)) as port:
        await get(fetcher, port, path)
    assert heads[0].split(b"\r\n")[0] == f"GET {path} HTTP/1.1".encode()


@pytest.mark.parametrize("url", ["http://127.0.0.1:{}?q=1", "HTTP://127.0.0.1:{}/a b", "http://127.0.0.1:{}/é"])
async def test_other_urls_are_made_normal_first(fetcher: HttpFetcher, url: str) -> None:
    heads: list[bytes] = []
    async with server(answering(answer(b"ok"), heads=heads)) as port:
        await fetcher.fetch(Fetch(url.format(port)), open_gate)
    assert heads[0].split(b"\r\n")[0] in (b"GET /?q=1 HTTP/1.1", b"GET /a%20b HTTP/1.1", b"GET /%C3%A9 HTTP/1.1")


@pytest.mark.parametrize("url", ["ftp://x/", "http://", "http://[::1/", "javascript:1", ""])
async def test_what_is_not_an_http_url_is_refused(fetcher: HttpFetcher, url: str) -> None:
    error = await failure(fetcher, Fetch(url))
    assert (error.text, error.blame, error.permanent) == ("not an http URL", Blame.URL, True)


async def test_default_headers_and_ones_own(fetcher: HttpFetcher) -> None:
    heads: list[bytes] = []
    async with server(answering(answer(b"1"), answer(b"2"), heads=heads)) as port:
        await get(fetcher, port)
        url = f"http://me:secret@127.0.0.1:{port}/"
        await fetcher.fetch(Fetch(url, headers={"accept": "text/html", "X-Own": "ä"}), open_gate)
    usual, own = (sorted(head.decode().lower().split("\r\n")[1:-2]) for head in heads)
    agent = f"user-agent: {AGENT.lower()}"
    assert usual == ["accept-encoding: gzip, deflate, br", "accept: */*", f"host: 127.0.0.1:{port}", agent]
    assert own[1:3] == ["accept: text/html", "authorization: basic bwu6c2vjcmv0"]
    assert own[-1] == "x-own: ä"


async def test_a_post_carries_its_body(fetcher: HttpFetcher, site: HostileSite) -> None:
    headers = {"Content-Type": "text/plain", "Content-Length": "999"}
    fetch = Fetch(site.url("/echo"), method="POST", body=b"some text", headers=headers)
    response = await fetcher.fetch(fetch, open_gate)
    assert response.status == 200
    assert b"some text" in response.body


async def test_only_the_fetcher_says_how_long_a_body_is(fetcher: HttpFetcher) -> None:
    heads: list[bytes] = []
    async with server(answering(answer(b"ok"), heads=heads)) as port:
        headers = {"Content-Length": "999", "Transfer-Encoding": "chunked", "X-Own": "1"}
        await fetcher.fetch(Fetch(f"http://127.0.0.1:{port}/", headers=headers), open_gate)
    assert (b"X-Own" in heads[0], b"Content-Length" in heads[0], b"Transfer" in heads[0]) == (True, False, False)


@pytest.mark.parametrize("headers", [{"X": "a\r\nEvil: 1"}, {"X\nEvil": "1"}])
async def test_a_header_cannot_smuggle_another(
    fetcher: HttpFetcher, site: HostileSite, headers: dict[str, str]
) -> None:
    error = await failure(fetcher, Fetch(site.url("/"), headers=headers))
    assert error.permanent
    assert len(site.log) == 0


async def test_redirects_and_errors_are_answers(fetcher: HttpFetcher, site: HostileSite) -> None:
    moved = await fetcher.fetch(Fetch(site.url("/redirect/3")), open_gate)
    broken = await fetcher.fetch(Fetch(site.url("/status/500")), open_gate)
    assert (moved.status, "Location" in moved.headers, broken.status, len(site.log)) == (302, True, 500, 2)


async def test_answers_without_a_body(fetcher: HttpFetcher, site: HostileSite) -> None:
    site.pages["/page"] = b"x" * 2000
    head = await fetcher.fetch(Fetch(site.url("/page"), method="HEAD", max_bytes=100), open_gate)
    unchanged = await fetcher.fetch(Fetch(site.url("/status/304")), open_gate)
    assert (head.body, head.headers["Content-Length"], unchanged.status, unchanged.body) == (b"", "2000", 304, b"")


async def test_an_interim_answer_is_passed_over(fetcher: HttpFetcher) -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
    async with server(answering(early + answer(b"late"))) as port:
        assert (await get(fetcher, port)).body == b"late"


async def test_a_change_of_protocol_is_not_an_answer(fetcher: HttpFetcher) -> None:
    switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: upgrade\r\n\r\n"
    async with server(answering(switch)) as port:
        error = await failure(fetcher, Fetch(f"http://127.0.0.1:{port}/"))
    assert error.text == "the server changed the protocol unasked"


# The gate


async def test_the_gate_opens_before_any_byte_is_sent(fetcher: HttpFetcher) -> None:
    events: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        events.append("byte")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(b"ok"))

    async with server(serve) as port:
        fetch = Fetch(f"http://127.0.0.1:{port}/", method="POST", body=b"x" * 300_000)
        await fetcher.fetch(fetch, lambda: events.append("gate"))
    assert events == ["gate", "byte"]


async def test_a_closed_gate_sends_nothing_and_keeps_the_connection(fetcher: HttpFetcher, site: HostileSite) -> None:
    with pytest.raises(TooLate):
        await fetcher.fetch(Fetch(site.url("/json")), CountingGate(allowed=0))
    assert len(site.log) == 0
    connector = fetcher._ways["direct", False].connector
    assert [len(idle) for idle in connector._conns.values()] == [1]
    assert (await fetcher.fetch(Fetch(site.url("/json")), open_gate)).status == 200
    assert len(fetcher._opened) == 1


async def test_no_gate_without_a_connection(fetcher: HttpFetcher) -> None:
    gate = CountingGate()
    async with server(answering()) as port:
        pass
    with pytest.raises(FetchError, match=r"^connection refused$") as caught:
        await fetcher.fetch(Fetch(f"http://127.0.0.1:{port}/"), gate)
    assert (gate.starts, caught.value.blame, caught.value.permanent) == (0, Blame.HOST, False)


# Connections


async def test_connections_are_used_again(fetcher: HttpFetcher, site: HostileSite) -> None:
    for _ in range(5):
        await fetcher.fetch(Fetch(site.url("/site/3/")), open_gate)
    assert len(fetcher._opened) == 1


async def test_no_more_connections_are_kept_than_asked_for() -> None:
    fetcher = HttpFetcher(AGENT, keep=2)
    async with HostileSite(host="0.0.0.0") as site:  # noqa: S104 - peers from elsewhere are hung up on
        for last in range(1, 7):
            await fetcher.fetch(Fetch(site.url("/json", host=f"127.0.0.{last}")), open_gate)
        connector = fetcher._ways["direct", False].connector
        assert sum(len(idle) for idle in connector._conns.values()) == 2
        await fetcher.close()


async def test_an_exit_that_is_forgotten_ends_what_it_has_begun_and_begins_anew(
    fetcher: HttpFetcher, site: HostileSite
) -> None:
    await fetcher.fetch(Fetch(site.url("/cookies/set?name=known")), open_gate)
    under_way = asyncio.ensure_future(fetcher.fetch(Fetch(site.url("/delay/200")), open_gate))
    while len(site.log) < 2:  # noqa: ASYNC110 - the site has no event for it
        await asyncio.sleep(0.01)
    before = fetcher._ways["direct", False]
    await fetcher.forget("direct")
    echo = await fetcher.fetch(Fetch(site.url("/cookies/echo")), open_gate)
    assert b"known" not in echo.body, "whoever it was before"
    assert fetcher._ways["direct", False] is not before
    assert not before.connector.closed
    assert (await under_way).status == 200
    assert before.connector.closed


async def test_a_kept_connection_that_the_server_closed_is_replaced(fetcher: HttpFetcher) -> None:
    """The second request of every connection is read and answered with the end: as late as it can be noticed."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer(b"ok"))
        await reader.readuntil(b"\r\n\r\n")

    gate = CountingGate()
    async with server(serve) as port:
        url = f"http://127.0.0.1:{port}/"
        await fetcher.fetch(Fetch(url), gate)
        assert (await fetcher.fetch(Fetch(url), gate)).body == b"ok"
        assert gate.starts == 3  # the gate knows of every request that was written
        with pytest.raises(FetchError, match=r"^connection closed before an answer$"):
            await fetcher.fetch(Fetch(url, method="POST", body=b"once only"), gate)
        assert gate.starts == 4
        await fetcher.fetch(Fetch(url), gate)
        with pytest.raises(TooLate):
            await fetcher.fetch(Fetch(url), CountingGate(allowed=1))


async def test_a_new_connection_is_never_tried_twice(fetcher: HttpFetcher, site: HostileSite) -> None:
    gate = CountingGate()
    with pytest.raises(FetchError, match=r"^connection closed before an answer$"):
        await fetcher.fetch(Fetch(site.url("/drop")), gate)
    with pytest.raises(FetchError, match=r"^connection reset$"):
        await fetcher.fetch(Fetch(site.url("/reset")), gate)
    assert (gate.starts, len(site.log)) == (2, 2)


async def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next(fetcher: HttpFetcher) -> None:
    bored = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        writer.write(answer(path))
        await bored.wait()
        writer.write(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
        await reader.read()

    async with server(serve) as port:
        assert (await get(fetcher, port, "/first")).body == b"/first"
        (kept,) = fetcher._opened
        assert not kept.should_close
        bored.set()
        while not kept.should_close:  # noqa: ASYNC110 - aiohttp tells nobody
            await asyncio.sleep(0)
        assert (await get(fetcher, port, "/second")).body == b"/second"


async def test_a_cancelled_fetch_leaves_no_connection(fetcher: HttpFetcher, site: HostileSite) -> None:
    task = asyncio.create_task(fetcher.fetch(Fetch(site.url("/delay/60000")), open_gate))
    await site.arrivals(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    connector = fetcher._ways["direct", False].connector
    assert (len(connector._acquired), len(connector._conns)) == (0, 0)


async def test_an_unknown_exit_is_charged_to_the_exit(fetcher: HttpFetcher, site: HostileSite) -> None:
    assert (await failure(fetcher, Fetch(site.url("/"), exit="tor"))).blame is Blame.EXIT


async def test_closing_twice_is_closing(fetcher: HttpFetcher, site: HostileSite) -> None:
    await fetcher.fetch(Fetch(site.url("/json")), open_gate)
    await fetcher.close()
    await fetcher.close()


# Cookies


async def test_cookies_stay_in_their_jar(fetcher: HttpFetcher, site: HostileSite) -> None:
    await fetcher.fetch(Fetch(site.url("/cookies/set?taste=sweet"), jar="one"), open_gate)
    same = await fetcher.fetch(Fetch(site.url("/cookies/echo"), jar="one", headers={"Cookie": "own=1"}), open_gate)
    other = await fetcher.fetch(Fetch(site.url("/cookies/echo"), jar="two"), open_gate)
    assert (b"sweet" in same.body, b"own" in same.body, b"sweet" in other.body) == (True, True, False)


async def test_cookies_stay_with_their_host() -> None:
    fetcher = HttpFetcher(AGENT)
    async with HostileSite(host="0.0.0.0") as site:  # noqa: S104
        await fetcher.fetch(Fetch(site.url("/cookies/set?taste=sweet")), open_gate)
        other = await fetcher.fetch(Fetch(site.url("/cookies/echo", host="127.0.0.2")), open_gate)
        await fetcher.close()
    assert b"sweet" not in other.body


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
    assert len(fetcher._ways["direct", False].connector._acquired) == 0


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
    error = await failure(fetcher, Fetch(site.url(path), timeout=5))
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
    assert len(fetcher._ways["direct", False].connector._acquired) == 0


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
    fetcher = HttpFetcher(AGENT, ways=direct(tls=trusting))
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

"""Fetching: ordinary answers, when a request may start, connections and cookies."""

from __future__ import annotations

import asyncio
import json

import pytest

from shoal.core.outcome import Blame
from shoal.errors import TooLate
from shoal.fetch.http import HttpFetcher
from shoal.fetch.protocol import Fetch, FetchError
from shoal.testing.hostile_site import HostileSite
from support.fetching import AGENT, CountingGate, answer, answering, failure, get, open_gate
from support.serving import server

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
    connector = fetcher._exits["direct", False].connector
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
        connector = fetcher._exits["direct", False].connector
        assert sum(len(idle) for idle in connector._conns.values()) == 2
        await fetcher.close()


async def test_an_exit_that_is_forgotten_ends_what_it_has_begun_and_begins_anew(
    fetcher: HttpFetcher, site: HostileSite
) -> None:
    await fetcher.fetch(Fetch(site.url("/cookies/set?name=known")), open_gate)
    asked, let_go = asyncio.Event(), asyncio.Event()

    async def hesitate(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await let_go.wait()
        writer.write(answer(b"at last"))

    async with server(hesitate) as port:
        under_way = asyncio.ensure_future(get(fetcher, port))
        await asked.wait()
        before = fetcher._exits["direct", False]
        await fetcher.forget("direct")
        echo = await fetcher.fetch(Fetch(site.url("/cookies/echo")), open_gate)
        assert b"known" not in echo.body, "whoever it was before"
        assert fetcher._exits["direct", False] is not before
        assert not before.connector.closed
        let_go.set()
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
    connector = fetcher._exits["direct", False].connector
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


async def test_a_cookie_that_was_set_by_hand_goes_before_a_kept_one_of_its_name(
    fetcher: HttpFetcher, site: HostileSite
) -> None:
    await fetcher.fetch(Fetch(site.url("/cookies/set?taste=sweet&size=big")), open_gate)
    by_hand = {"Cookie": "taste=bitter; own=1; flag"}
    echo = await fetcher.fetch(Fetch(site.url("/echo"), headers=by_hand), open_gate)
    assert json.loads(echo.body)["headers"]["cookie"] == "taste=bitter; own=1; flag; size=big"
    after = await fetcher.fetch(Fetch(site.url("/cookies/echo")), open_gate)
    assert json.loads(after.body) == {"taste": "sweet", "size": "big"}, "what was kept is kept"


async def test_cookies_stay_with_their_host() -> None:
    fetcher = HttpFetcher(AGENT)
    async with HostileSite(host="0.0.0.0") as site:  # noqa: S104
        await fetcher.fetch(Fetch(site.url("/cookies/set?taste=sweet")), open_gate)
        other = await fetcher.fetch(Fetch(site.url("/cookies/echo", host="127.0.0.2")), open_gate)
        await fetcher.close()
    assert b"sweet" not in other.body

"""OpenExit out: how they are written, and that requests really leave by them."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import trustme

from servers.proxies import free_port, http_proxy, socks_proxy
from shoal.core.exit_address import ExitAddress, parse_exit
from shoal.core.outcome import Blame
from shoal.errors import BadSettings
from shoal.fetch.exit_connections import ExitConnections, open_exit
from shoal.fetch.http import HttpFetcher, Timeouts
from shoal.fetch.protocol import Fetch, FetchError
from support.serving import server


def test_what_can_be_written() -> None:
    assert parse_exit(" direct ") == ExitAddress("direct")
    assert parse_exit("http://host:3128") == ExitAddress("http", "host", 3128)
    assert parse_exit("https://host") == ExitAddress("https", "host", 443)
    assert parse_exit("socks5h://[::1]:9050/") == ExitAddress("socks5", "::1", 9050)
    assert parse_exit("source://192.0.2.7") == ExitAddress("source", "192.0.2.7")
    assert parse_exit("http://me:p%40ss%3A%2Fw@host:1") == ExitAddress("http", "host", 1, "me", "p@ss:/w")


def test_names_tell_exits_apart_and_hide_secrets() -> None:
    one, two = (parse_exit(f"http://session-{n}:secret@gate.example:7777") for n in (1, 2))
    assert one.name != two.name
    assert one.name == parse_exit("socks5://session-1:other@gate.example:7777").name, "the same address to the world"
    for address in (one, two):
        assert "secret" not in address.name + address.shown
        assert "session" not in address.name + address.shown
    assert [parse_exit(text).name for text in ("direct", "source://[::1]", "http://h:1", "socks5://[::1]:2")] == [
        "direct",
        "::1",
        "h:1",
        "[::1]:2",
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("proxy.example:8080", "is not an exit"),
        ("ftp://user:secret@host:1", "no kind 'ftp'"),
        ("http://", "names no host"),
        ("http://user:secret@:80", "names no host"),
        ("http://host:99999", "port"),
        ("http://host:0", "port"),
        ("http://host:port", "port"),
        ("http://user:sec/ret@host:80", "names no host|nothing may follow|port"),
        ("http://user:sec ret@host:80", "space"),
        ("http://user:secrét@host:80", "percent-encoded"),
        ("http://host:80/path", "nothing may follow"),
        ("source://example.org", "not a name"),
        ("source://127.0.0.1:80", "no port"),
        ("http://us%3Aer:secret@host:1", "colon"),
        (f"socks5://u:{'x' * 256}secret@host:1", "255"),
        ("http://[::1:80", "brackets"),
        ("user:secret@host", "is not an exit"),
    ],
)
def test_what_cannot_be_written_gets_one_sentence_without_secrets(text: str, why: str) -> None:
    with pytest.raises(BadSettings, match=f"(?i){why}") as caught:
        parse_exit(text)
    assert "sec" not in str(caught.value)
    assert str(caught.value).endswith(".")


@asynccontextmanager
async def target(tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[str]]]:
    """A site that notes where each request comes from, and says what was asked."""
    seen: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            seen.append(writer.get_extra_info("peername")[0])
            assert "proxy-authorization" not in head.lower(), "the proxy's password is not the site's business"
            body = head.split("\r\n")[0].encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async with server(serve, tls) as port:
        yield port, seen


@asynccontextmanager
async def leaving_by(address: str, tls: ssl.SSLContext | None = None, **phases: float) -> AsyncIterator[HttpFetcher]:
    def ways(_: str, guarded: bool) -> ExitConnections:
        return open_exit(parse_exit(address), tls=tls)

    fetcher = HttpFetcher("ShoalTest/1.0", exits=ways, timeouts=Timeouts(**phases))
    try:
        yield fetcher
    finally:
        await fetcher.close()


async def get(fetcher: HttpFetcher, url: str) -> bytes:
    return (await fetcher.fetch(Fetch(url, timeout=60), lambda: None)).body


@pytest.fixture(params=["http", "socks5"])
def proxy(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """The address of a real proxy, and where it leaves from."""
    if request.param == "http":
        with http_proxy("127.0.0.2") as port:
            yield f"http://127.0.0.1:{port}", "127.0.0.2"
    else:
        with socks_proxy("127.0.0.3") as port:
            yield f"socks5://127.0.0.1:{port}", "127.0.0.3"


async def test_requests_leave_by_the_proxy(proxy: tuple[str, str]) -> None:
    address, leaves_from = proxy
    async with target() as (port, seen), leaving_by(address) as fetcher:
        for number in range(3):
            assert await get(fetcher, f"http://127.0.0.1:{port}/{number}?a=b") == f"GET /{number}?a=b HTTP/1.1".encode()
        assert seen == [leaves_from] * 3


async def test_tls_through_a_proxy_is_with_the_site(proxy: tuple[str, str]) -> None:
    authority = trustme.CA()
    trusting, serving = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.configure_trust(trusting)
    authority.issue_cert("127.0.0.1").configure_cert(serving)
    address, leaves_from = proxy
    async with target(serving) as (port, seen), leaving_by(address, trusting) as fetcher:
        assert await get(fetcher, f"https://127.0.0.1:{port}/x") == b"GET /x HTTP/1.1"
        assert seen == [leaves_from]


async def test_names_are_looked_up_by_the_socks_proxy() -> None:
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(3)
        writer.write(b"\x05\x00")
        asked.append(await reader.readexactly(5 + len("no-such-host.invalid") + 2))
        writer.write(b"\x05\x04\x00\x01\x00\x00\x00\x00\x00\x00")
        writer.close()

    async with server(serve) as port, leaving_by(f"socks5://127.0.0.1:{port}") as fetcher:
        with pytest.raises(FetchError) as caught:
            await get(fetcher, "http://no-such-host.invalid/")
    assert b"no-such-host.invalid" in asked[0]
    assert (caught.value.blame, caught.value.doubtful) == (Blame.EXIT, True)


@pytest.mark.parametrize("kind", ["http", "socks5"])
async def test_credentials_with_odd_characters(kind: str) -> None:
    login = ("us.er", "p@ss:w0rd%&=") if kind == "socks5" else ("user", "passw0rd")  # tinyproxy knows no others
    written = "us.er:p%40ss%3Aw0rd%25%26%3D" if kind == "socks5" else "user:passw0rd"
    starting = socks_proxy if kind == "socks5" else http_proxy
    with starting("127.0.0.4", login) as proxy_port:
        async with target() as (port, seen):
            async with leaving_by(f"{kind}://{written}@127.0.0.1:{proxy_port}") as fetcher:
                await get(fetcher, f"http://127.0.0.1:{port}/")
                assert seen == ["127.0.0.4"]
            async with leaving_by(f"{kind}://us.er:wrong@127.0.0.1:{proxy_port}") as fetcher:
                with pytest.raises(FetchError) as caught:
                    await get(fetcher, f"http://127.0.0.1:{port}/")
                assert caught.value.blame is Blame.EXIT
                assert caught.value.doubtful == (kind == "http"), "tinyproxy answers 401, as a site might"
                assert "wrong" not in caught.value.text
            assert len(seen) == 1


async def test_an_http_proxy_is_told_who_asks_in_any_characters() -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with server(serve) as port, leaving_by(f"http://us.er:p%40ss%3A%2F%C3%A9@127.0.0.1:{port}") as fetcher:
        for url in ("http://site.invalid/page", "https://site.invalid/page"):
            with pytest.raises(FetchError) as caught:
                await get(fetcher, url)
            assert (caught.value.blame, caught.value.doubtful) == (Blame.EXIT, False)
    said = base64.b64encode("us.er:p@ss:/é".encode())
    assert heads[0].startswith(b"GET http://site.invalid/page HTTP/1.1\r\n")
    assert heads[1].startswith(b"CONNECT site.invalid:443 HTTP/1.1\r\n")
    assert all(b"Proxy-Authorization: Basic " + said + b"\r\n" in head for head in heads)


async def test_a_source_address_is_seen_by_the_target() -> None:
    async with target() as (port, seen), leaving_by("source://127.0.0.9") as fetcher:
        await get(fetcher, f"http://127.0.0.1:{port}/")
        assert seen == ["127.0.0.9"]


@pytest.mark.parametrize("address", ["192.0.2.7", "[2001:db8::7]"])
async def test_a_source_address_that_this_machine_does_not_have_is_to_blame(address: str) -> None:
    """Also one of another kind than the target's, by which that cannot be reached."""
    async with target() as (port, seen), leaving_by(f"source://{address}") as fetcher:
        with pytest.raises(FetchError) as caught:
            await get(fetcher, f"http://127.0.0.1:{port}/")
        assert (caught.value.blame, caught.value.permanent, seen) == (Blame.EXIT, False, [])
        assert caught.value.doubtful == (address != "192.0.2.7")


async def test_a_target_that_refuses_is_not_the_fault_of_a_source_address() -> None:
    async with leaving_by("source://127.0.0.9") as fetcher:
        with pytest.raises(FetchError) as caught:
            await get(fetcher, f"http://127.0.0.1:{free_port()}/")
        assert caught.value.blame is Blame.HOST


@pytest.mark.parametrize("kind", ["http", "socks5"])
async def test_a_proxy_that_is_dead_is_to_blame(kind: str) -> None:
    async with target() as (port, seen), leaving_by(f"{kind}://127.0.0.1:{free_port()}") as fetcher:
        with pytest.raises(FetchError) as caught:
            await get(fetcher, f"http://127.0.0.1:{port}/")
        assert (caught.value.blame, caught.value.doubtful, seen) == (Blame.EXIT, False, [])


async def test_a_socks_proxy_that_hangs_is_to_blame() -> None:
    async def serve(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        await reader.read()

    async with server(serve) as port, leaving_by(f"socks5://127.0.0.1:{port}", connect=0.3) as fetcher:
        with pytest.raises(FetchError) as caught:
            await get(fetcher, "http://127.0.0.1:1/")
    assert (caught.value.blame, caught.value.doubtful) == (Blame.EXIT, False)


async def test_a_target_that_hangs_behind_a_socks_proxy_is_in_doubt() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"\x05\x00")
        await reader.read()
        writer.close()

    async with server(serve) as port, leaving_by(f"socks5://127.0.0.1:{port}", connect=0.3) as fetcher:
        with pytest.raises(FetchError) as caught:
            await get(fetcher, "http://127.0.0.1:1/")
    assert (caught.value.blame, caught.value.doubtful) == (Blame.EXIT, True)


async def test_what_goes_wrong_behind_a_proxy_is_in_doubt(proxy: tuple[str, str]) -> None:
    async with leaving_by(proxy[0]) as fetcher:
        with pytest.raises(FetchError) as caught:
            await get(fetcher, f"http://127.0.0.1:{free_port()}/")
        assert (caught.value.blame, caught.value.doubtful) == (Blame.EXIT, True)

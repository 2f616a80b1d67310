"""The SSRF guard: whatever a client writes, and wherever it leads, no connection is made to what is not public.

A server on all of 127.0.0.0/8 notes which address each connection was made to. 127.0.0.2 stands for the public internet
(the operator has allowed it), the rest of 127.0.0.0/8 for what is to be kept from strangers.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv6Address, ip_network
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import given
from hypothesis import strategies as st

from servers.proxies import http_proxy, socks_proxy
from shoal.api.page import Page
from shoal.api.request import Request
from shoal.api.scraper import Scraper
from shoal.core.exit_address import parse_exit
from shoal.core.outcome import Blame
from shoal.core.task import Kind, NewTask
from shoal.core.url import normalise
from shoal.errors import BadURL
from shoal.fetch.exit_connections import ExitConnections, open_exit
from shoal.fetch.guard.rules import NOT_PUBLIC, Guard
from shoal.fetch.http import HttpFetcher
from shoal.fetch.protocol import Fetch, FetchError
from shoal.frontier.contract.frontier import NewRun
from shoal.frontier.contract.jobs import NewJob
from shoal.intake.admission import to_task
from shoal.work.options import WorkTiming
from support.working import QUICK, Crawled, crawl, opened, reader, result_of, worker_for

OPEN = Guard([ip_network("127.0.0.2/32")])
STRICT = Guard()


def wide(text: str) -> str:
    """The same in the full-width characters that browsers take for the plain ones."""
    return "".join(chr(ord(char) + 0xFEE0) if char.isalnum() else char for char in text)


INSIDE = [
    "127.0.0.1", "127.1", "127.0.1", "127.255.255.254", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1",
    "017700000001", "0x7f.0x0.0x0.0x1", "127.0.0.1.", "0", "0.0.0.0", "0x0", "00", "0.1.2.3", "①②⑦.⓪.⓪.①",
    wide("127.0.0.1"), "127。0。0。1", "%31%32%37.0.0.1", "127%2e0.0.1", "LOCALHOST", "localhost", "localhost.",
    "a.b.localhost", wide("localhost"),
    "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255",
    "169.254.0.1", "169.254.169.254", "0xA9FEA9FE", "2852039166", "100.100.100.200", "168.63.129.16", "192.0.0.192",
    "192.0.2.1", "198.18.0.1", "198.51.100.7", "203.0.113.7", "192.88.99.1", "224.0.0.1", "239.255.255.255",
    "240.0.0.1", "255.255.255.255", "user@127.0.0.1", "example.com@127.0.0.1", "127.0.0.1:80", "0x7f.1:8080",
    "[::]", "[::1]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:10.0.0.1]",
    "[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]",
    "[2002:7f00:1::]", "[2002:a00:1::1]", "[2001:0:7f00:1::]", "[2001::1]", "[2001:db8::1]", "[3fff::1]", "[fe80::1]",
    "[fec0::1]", "[fc00::1]", "[fd00:ec2::254]", "[fd20:ce::254]", "[ff02::1]", "[100::1]", "[4000::1]", "[5f00::1]",
    "[2001:2::1]", "[2001:20::1]",
]  # fmt: skip
OUTSIDE = [
    "example.org", "1.1.1.1", "8.8.8.8", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "192.167.1.1",
    "11.0.0.1", "169.253.1.1", "223.255.255.255", "127.example.org", "localhost.example.org", "[2606:4700::1111]",
    "[::ffff:8.8.8.8]", "[64:ff9b::8.8.8.8]", "[2a00:1450::1]", "notlocalhost",
]  # fmt: skip


@pytest.mark.parametrize("host", INSIDE)
def test_what_is_inside_is_refused_however_it_is_written(host: str) -> None:
    for scheme in ("http", "https"):
        try:
            url = normalise(f"{scheme}://{host}/page?a=b")
        except BadURL:
            continue
        reason = STRICT.refuses_url(url)
        assert reason, url
        assert " is " in reason


@pytest.mark.parametrize("host", OUTSIDE)
def test_what_is_outside_passes(host: str) -> None:
    assert STRICT.refuses_url(normalise(f"https://{host}/")) is None


@given(st.integers(0, 2**32 - 1))
def test_every_spelling_of_an_address_is_that_address(number: int) -> None:
    plain = IPv4Address(number)
    octets = list(plain.packed)
    spellings = [
        str(plain),
        f"{plain}.",
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(map(hex, octets)),
        ".".join(f"0{octet:o}" for octet in octets),
        f"{octets[0]}.{number & 0xFFFFFF}",
        f"{octets[0]}.{octets[1]}.{number & 0xFFFF}",
        wide(str(plain)),
        f"[{IPv6Address((0xFFFF << 32) + number)}]",
        f"[{IPv6Address((0x64FF9B << 96) + number)}]",
    ]
    kind = STRICT.refuses_address(str(plain))
    for spelling in spellings:
        reason = STRICT.refuses_url(normalise(f"http://{spelling}/"))
        assert (reason is None) == (kind is None), spelling
        assert reason is None or reason.endswith(f" is {kind}")
    global_ = plain.is_global and not plain.is_multicast
    assert kind is not None or global_, "never more than what the system calls public"


def test_the_operator_opens_networks() -> None:
    guard = Guard([ip_network("10.0.0.0/8"), ip_network("fd00::/8"), ip_network("127.0.0.1/32")])
    for host in ("10.1.2.3", "[::ffff:10.1.2.3]", "[64:ff9b::10.1.2.3]", "[fd00::1]", "localhost", "127.0.0.1"):
        assert guard.refuses_url(f"http://{host}/") is None, host
    for host in ("11.0.0.1", "127.0.0.1.example"):
        assert guard.refuses_url(f"http://{host}/") is None, host
    for host in ("192.168.0.1", "127.0.0.2", "[fc00::1]", "[2002:a01:203::1]", "169.254.169.254"):
        assert guard.refuses_url(f"http://{host}/") is not None, host


class Zone(AbstractResolver):
    """Names and what they mean: one answer after the other, and the last one ever after."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked += 1
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not addresses:
            raise OSError(socket.EAI_NONAME, "no such name")
        kind = {True: socket.AF_INET6, False: socket.AF_INET}
        return [
            ResolveResult(hostname=host, host=each, port=port, family=kind[":" in each], proto=0, flags=0)
            for each in addresses
        ]

    async def close(self) -> None:
        pass


Pages = dict[str, tuple[int, dict[str, str], str]]


class Everywhere:
    """A site on all of 127.0.0.0/8 that notes where each connection was made to, before anything is said on it."""

    def __init__(self) -> None:
        self.port = 0
        self.connected: list[str] = []
        self.asked: list[tuple[str, str]] = []
        self.heads: list[str] = []
        self.pages: Pages = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        at = writer.get_extra_info("sockname")[0]
        self.connected.append(at)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                path = head.split(" ")[1]
                self.heads.append(head)
                self.asked.append((at, path))
                status, headers, body = self.pages.get(path, (200, {}, f"<h1>{at}</h1>"))
                lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{lines}\r\n{body}".encode())
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@asynccontextmanager
async def everywhere(tls: ssl.SSLContext | None = None) -> AsyncIterator[Everywhere]:
    site = Everywhere()
    listening = await asyncio.start_server(site.serve, "0.0.0.0", 0, ssl=tls)
    site.port = listening.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        listening.close()
        await listening.wait_closed()


@asynccontextmanager
async def fetching(
    zone: Zone | None, exit_: str = "direct", tls: ssl.SSLContext | None = None
) -> AsyncIterator[HttpFetcher]:
    def ways(_: str, guarded: bool) -> ExitConnections:
        return open_exit(parse_exit(exit_), tls=tls, guard=OPEN if guarded else None, resolver=zone)

    fetcher = HttpFetcher("ShoalTest/1.0", exits=ways)
    try:
        yield fetcher
    finally:
        await fetcher.close()


async def get(fetcher: HttpFetcher, url: str, *, guarded: bool = True) -> bytes:
    return (await fetcher.fetch(Fetch(url, timeout=60, guarded=guarded), lambda: None)).body


async def refused(fetcher: HttpFetcher, url: str) -> None:
    with pytest.raises(FetchError) as caught:
        await get(fetcher, url)
    assert (caught.value.blame, caught.value.text) == (Blame.POLICY, NOT_PUBLIC)


class TestConnections:
    @pytest.mark.parametrize("exit_", ["direct", "source://127.0.0.9"])
    async def test_a_name_that_is_bound_anew_leads_nowhere(self, exit_: str) -> None:
        zone = Zone(["127.0.0.2"], ["127.0.0.1"], ["::ffff:127.0.0.1"], ["10.0.0.1", "127.0.0.3"])
        async with everywhere() as site, fetching(zone, exit_) as fetcher:
            url = f"http://rebound.example:{site.port}/"
            assert await get(fetcher, url) == b"<h1>127.0.0.2</h1>"
            for _ in range(3):
                await fetcher.forget("direct")
                await refused(fetcher, url)
            assert zone.asked == 4
            assert site.connected == ["127.0.0.2"]

    @pytest.mark.parametrize("exit_", ["direct", "source://127.0.0.9"])
    async def test_nobody_learns_which_names_there_are_inside(self, exit_: str) -> None:
        """A name that leads nowhere and one that leads inside are one answer, and one end."""
        async with everywhere() as site, fetching(Zone([], ["127.0.0.1"]), exit_) as fetcher:
            ends = []
            for _ in range(2):
                with pytest.raises(FetchError) as caught:
                    await get(fetcher, f"http://intranet.example:{site.port}/")
                ends.append((caught.value.blame, caught.value.text))
            assert ends == [(Blame.POLICY, NOT_PUBLIC)] * 2

    async def test_of_several_addresses_only_the_public_ones_are_tried(self) -> None:
        async with everywhere() as site, fetching(Zone(["127.0.0.1", "127.0.0.2", "::1"])) as fetcher:
            assert await get(fetcher, f"http://mixed.example:{site.port}/") == b"<h1>127.0.0.2</h1>"
            assert set(site.connected) == {"127.0.0.2"}

    @pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost", "[::ffff:127.0.0.1]"])
    async def test_addresses_are_checked_where_no_name_is_looked_up(self, host: str) -> None:
        async with everywhere() as site, fetching(None) as fetcher:
            await refused(fetcher, f"http://{host}:{site.port}/")
            assert site.connected == []

    async def test_a_connection_that_others_keep_open_is_not_used(self) -> None:
        """The same name means the same place to both, but only one may go there."""
        async with everywhere() as site, fetching(Zone(["127.0.0.1"])) as fetcher:
            url = f"http://intranet.example:{site.port}/"
            assert await get(fetcher, url, guarded=False) == b"<h1>127.0.0.1</h1>"
            await refused(fetcher, url)
            assert await get(fetcher, url, guarded=False) == b"<h1>127.0.0.1</h1>"
            assert len(site.connected) == 1
            assert len(site.asked) == 2

    async def test_a_socks_proxy_is_told_the_address_that_was_checked(self) -> None:
        """microsocks would look the name up itself, and find nothing: there is no such name."""
        authority = trustme.CA()
        trusting, serving = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.configure_trust(trusting)
        authority.issue_cert("shop.example").configure_cert(serving)
        with socks_proxy("127.0.0.5") as proxy:
            zone = Zone(["127.0.0.2"], ["127.0.0.1"])
            async with everywhere() as site, fetching(zone, f"socks5://127.0.0.1:{proxy}") as fetcher:
                assert await get(fetcher, f"http://shop.example:{site.port}/") == b"<h1>127.0.0.2</h1>"
                await fetcher.forget("direct")
                await refused(fetcher, f"http://shop.example:{site.port}/")
                assert site.connected == ["127.0.0.2"]
            zone = Zone(["127.0.0.2"])
            async with everywhere(serving) as site, fetching(zone, f"socks5://127.0.0.1:{proxy}", trusting) as fetcher:
                for _ in range(2):
                    assert await get(fetcher, f"https://shop.example:{site.port}/") == b"<h1>127.0.0.2</h1>"
                with pytest.raises(FetchError, match="certificate"):
                    await get(fetcher, f"https://other.example:{site.port}/")
                assert site.asked == [("127.0.0.2", "/")] * 2

    async def test_an_http_proxy_is_not_asked_for_what_leads_inside(self) -> None:
        with http_proxy("127.0.0.6") as proxy:
            zone = Zone(["127.0.0.2"], ["127.0.0.1"], [])
            async with everywhere() as site, fetching(zone, f"http://127.0.0.1:{proxy}") as fetcher:
                assert await get(fetcher, f"http://127.0.0.2:{site.port}/") == b"<h1>127.0.0.2</h1>"
                await refused(fetcher, f"http://rebound.example:{site.port}/")
                with pytest.raises(FetchError) as caught:
                    await get(fetcher, f"https://nowhere.example:{site.port}/")
                assert (caught.value.blame, caught.value.text) == (Blame.POLICY, NOT_PUBLIC), (
                    "no name tells whether it exists"
                )
                assert site.connected == ["127.0.0.2"]


class TestWork:
    """Jobs on a worker, as if submitted to a gateway, with a public page that leads elsewhere."""

    async def test_nothing_that_a_job_finds_leads_inside(self, tmp_path: Path) -> None:
        scraper = Scraper("job", delay=0, concurrency=8)

        @scraper.page
        def read(page: Page) -> Any:
            yield {"h1": page.text("h1")}
            yield from page.follow("a")

        async with everywhere() as site, opened(tmp_path) as engine:
            inside = f"http://127.0.0.3:{site.port}"
            listed = f"<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url><loc>{inside}/map</loc></url></urlset>"
            site.pages = {
                "/": (200, {}, f"<h1>ok</h1><a href='{inside}/link'>x</a><a href='/away'>x</a><a href='/near'>x</a>"),
                "/away": (302, {"Location": f"{inside}/redirected"}, ""),
                "/near": (307, {"Location": "/"}, ""),
                "/robots.txt": (200, {}, f"Sitemap: {inside}/named.xml\n"),
                "/sitemap.xml": (200, {}, listed),
            }
            public = f"http://127.0.0.2:{site.port}"
            crawled = await job(
                engine, scraper, Request(public), Request(f"{public}/sitemap.xml", kind=Kind.SITEMAP),
                Request(f"{public}/robots.txt", kind=Kind.SITEMAP),
            )  # fmt: skip
            assert set(crawled.dead) == {"/link", "/redirected", "/map", "/named.xml"}
            for letter in crawled.dead.values():
                assert (letter.reason.blame, letter.reason.text) == (Blame.POLICY, NOT_PUBLIC)
                assert letter.attempts == 0
            assert set(site.connected) == {"127.0.0.2"}
            assert {"h1": "ok"} in crawled.items

            again = await crawl(engine, scraper, "own", urls=[f"{inside}/typed"], guard=OPEN)
            assert again.counters.done == 1, "whoever runs it may go where they like, robots.txt included"
            assert ("127.0.0.3", "/typed") in site.asked

    async def test_a_robots_file_that_leads_inside_cannot_be_had(self, tmp_path: Path) -> None:
        scraper = reader(obey_robots=True, attempts=1, site_down_after=0)
        async with everywhere() as site, opened(tmp_path) as engine:
            inside = f"http://127.0.0.3:{site.port}/robots.txt"
            site.pages = {"/robots.txt": (302, {"Location": inside}, "")}
            timing = WorkTiming(robots_meanwhile=50)
            crawled = await job(engine, scraper, Request(f"http://127.0.0.2:{site.port}/page"), timing=timing)
            assert {path: letter.reason.text for path, letter in crawled.dead.items()} == {
                "/robots.txt": f"robots.txt: {NOT_PUBLIC}",
                "/page": "robots.txt could not be had",
            }
            assert site.asked == [("127.0.0.2", "/robots.txt")]

    async def test_a_worker_guards_jobs_unless_told_otherwise(self, tmp_path: Path) -> None:
        async with everywhere() as site, opened(tmp_path) as engine:
            crawled = await job(engine, reader(), Request(f"http://127.0.0.2:{site.port}/"), guard=None)
            assert crawled.only_death.reason.blame is Blame.POLICY
            assert site.connected == []

    async def test_jobs_share_no_cookies(self, tmp_path: Path) -> None:
        """What a site remembers of one client is not told in the name of another."""
        scraper = reader()
        async with everywhere() as site, opened(tmp_path) as engine:
            site.pages = {"/in": (200, {"Set-Cookie": "who=alice"}, "<h1>in</h1>")}
            public = f"http://127.0.0.2:{site.port}"
            worker = worker_for(engine, scraper, guard=OPEN, concurrency=1)
            for name, paths in (("alice", ("/in", "/a")), ("bob", ("/b",))):
                await submit(engine, scraper, name, *(Request(f"{public}{path}") for path in paths))
            await worker.run()
            assert [(path, "who=alice" in head) for head, (_, path) in zip(site.heads, site.asked, strict=True)] == [
                ("/in", False),
                ("/a", True),
                ("/b", False),
            ]


async def submit(engine: Any, scraper: Scraper, run_id: str, *requests: Request) -> None:
    tasks = [to_task(request, scraper, guarded=True) for request in requests]
    run = NewRun(run_id, scraper.name, scraper.policy(), "distributed", "jobs")
    await engine.jobs.submit([NewJob(run, [task for task in tasks if isinstance(task, NewTask)])])


async def job(
    engine: Any, scraper: Scraper, *requests: Request, guard: Guard | None = OPEN, timing: WorkTiming = QUICK
) -> Crawled:
    await submit(engine, scraper, "job", *requests)
    options: dict[str, Any] = {} if guard is None else {"guard": guard}
    async with asyncio.timeout(120):
        await worker_for(engine, scraper, timing=timing, **options).run()
    return await result_of(engine, "job")

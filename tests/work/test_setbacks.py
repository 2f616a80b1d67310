"""What is not a page's own fault costs it nothing: rate limits, sites that are down, a worker that is offline."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest
import trustme

from shoal.config.settings import Settings
from shoal.core.outcome import Blame
from shoal.fetch.own_network import has_default_route
from shoal.fetch.protocol import Fetch, Fetcher, FetchError, Gate, Response, Stage
from shoal.frontier.contract.engine import Engine
from shoal.frontier.open import open_engine
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.insight.look_up import look_up
from shoal.insight.run_eta import estimate_by
from shoal.testing.hostile.call import Call
from shoal.testing.hostile_site import HostileSite
from shoal.work.options import WorkerOptions, WorkTiming
from shoal.work.worker import Worker
from support.engine_urls import ENGINES, emptied
from support.waiting import until
from support.working import AGENT, crawl, reader, result_of, start_run, worker_for

QUICK = WorkTiming(retry_first=5, backoff_first=50, outage_first=100, offline_first=50)
PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nConnection: close\r\n\r\n<h1>ok</h1>"


# Rate limits


@pytest.fixture
async def any_engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    """An empty store on the engine that the test is given."""
    async with emptied(request.param, tmp_path) as url:
        engine = await open_engine(url)
        yield engine
        await engine.close()


@pytest.mark.parametrize(
    ("any_engine", "concurrency"), [*((kind, 4) for kind in ENGINES), ("sqlite", 1)], indirect=["any_engine"]
)
async def test_a_page_that_is_always_limited_starves_nobody_and_ends_alone(
    any_engine: Engine, site: HostileSite, concurrency: int
) -> None:
    urls = [site.url("/429/seconds/1"), *(site.url(f"/ok/{n}") for n in range(20))]
    _serve_pages(site)
    scraper = reader(concurrency=concurrency, max_rate_limits=3)
    crawled = await crawl(any_engine, scraper, urls=urls)
    assert len(crawled.items) == 20
    assert (crawled.counters.dead, crawled.counters.retries) == (1, 0)
    reason = crawled.only_death.reason
    assert reason.blame is Blame.URL
    assert reason.text == (
        "rate limited (HTTP 429, Retry-After 1 s), 3 times in a row while other pages of its site were answered"
    )
    assert len(site.log.filter("/429/")) == 3


async def test_a_site_that_limits_everything_is_waited_for_and_loses_nothing(
    engine: SqliteEngine, site: HostileSite
) -> None:
    async def limited(call: Call, _rest: list[str]) -> None:
        if call.memory.count("all") <= 9:
            await call.answer(b"", status=429)
        else:
            await call.answer("<h1>at last</h1>")

    site._site.routes["quota"] = limited
    urls = [site.url(f"/quota/{n}") for n in range(3)]
    scraper = reader(max_rate_limits=2, attempts=1)
    crawled = await crawl(engine, scraper, urls=urls, timing=WorkTiming(backoff_first=1))
    assert (len(crawled.items), crawled.counters.dead, crawled.counters.snoozes) == (3, 0, 9)


# A site that is down


@pytest.mark.parametrize("any_engine", ENGINES, indirect=True)
async def test_a_site_that_is_down_at_first_costs_its_pages_nothing(any_engine: Engine) -> None:
    engine = any_engine
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))  # nobody listens: connections are refused
        port = door.getsockname()[1]
        urls = [f"http://127.0.0.1:{port}/{n}" for n in range(100)]
        run = asyncio.create_task(crawl(engine, reader(attempts=1, concurrency=4), urls=urls, timing=QUICK))
        await until(lambda: _causes(engine, port), "the slot says why it waits")
        assert "site down since 2" in (await _causes(engine, port) or "")
        assert "connection refused" in (await _causes(engine, port) or "")
        await until(lambda: _explained(engine, urls[50]), "its page can say why it waits")
        async with _answering(door, PAGE):
            crawled = await run
    assert len(crawled.items) == 100
    assert (crawled.counters.dead, crawled.counters.retries) == (0, 0)


async def test_robots_txt_of_a_site_that_is_down_costs_its_pages_nothing(engine: SqliteEngine) -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
        scraper = reader(attempts=1, obey_robots=True)
        run = asyncio.create_task(crawl(engine, scraper, urls=[f"http://127.0.0.1:{port}/"], timing=QUICK))
        await until(lambda: _causes(engine, port), "the slot says why it waits")
        assert "robots.txt: connection refused" in (await _causes(engine, port) or "")
        async with _answering(door, PAGE):
            crawled = await run
    assert (len(crawled.items), crawled.counters.dead) == (1, 0)


async def test_a_robots_txt_that_fails_costs_its_pages_nothing(engine: SqliteEngine, site: HostileSite) -> None:
    async def answer(call: Call) -> None:
        await call.answer(b"", status=500 if call.memory.count("robots") <= 2 else 404)

    site.robots["127.0.0.1"] = answer
    _serve_pages(site)
    timing = WorkTiming(robots_kept_without_answer=50, outage_first=60)
    scraper = reader(attempts=1, obey_robots=True)
    crawled = await crawl(engine, scraper, urls=[site.url("/ok/1"), site.url("/ok/2")], timing=timing)
    assert (len(crawled.items), crawled.counters.dead, crawled.counters.retries) == (2, 0, 0)


async def test_a_site_that_stays_down_is_tried_ever_more_rarely_and_then_given_up(engine: SqliteEngine) -> None:
    """It takes connections and cannot speak TLS."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
        async with _answering(door, b"no TLS\r\n") as connections:
            urls = [f"https://127.0.0.1:{port}/{n}" for n in range(3)]
            scraper = reader(site_down_after=1.5)
            crawled = await crawl(engine, scraper, urls=urls, timing=QUICK)
    assert [letter.reason.blame for letter in crawled.dead.values()] == [Blame.HOST] * 3
    assert all(letter.reason.text.startswith("site down since 2") for letter in crawled.dead.values())
    assert all("TLS failed" in letter.reason.text for letter in crawled.dead.values())
    times = sorted(connections["127.0.0.1"])
    before_the_end = [moment for moment in times if moment - times[0] < 1.5]
    assert len(before_the_end) <= 5, "0, 100, 300, 700 and 1500 ms after the first, at the earliest"
    assert len(times) <= len(before_the_end) + 3


async def test_tries_to_connect_keep_the_clocks_of_their_sites(engine: SqliteEngine) -> None:
    """Each of many sites that take connections and break them off sees no two of them closer than the delay."""
    with socket.socket() as door:
        door.bind(("0.0.0.0", 0))  # noqa: S104 - all of 127.0.0.0/8
        port = door.getsockname()[1]
        async with _answering(door, b"no TLS\r\n") as connections:
            urls = [f"https://127.0.1.{site}:{port}/{n}" for site in range(1, 201) for n in range(3)]
            scraper = reader(delay=0.5, site_down_after=1)
            timing = WorkTiming(outage_first=1)
            crawled = await crawl(engine, scraper, urls=urls, timing=timing, concurrency=400)
    assert crawled.counters.dead == 600
    assert len(connections) == 200
    gaps = [after - before for times in connections.values() for before, after in pairwise(times)]
    assert min(gaps) >= 0.5


async def test_a_run_of_server_errors_is_the_sites_failure_and_a_single_one_the_pages(
    engine: SqliteEngine, site: HostileSite
) -> None:
    async def broken(call: Call, _rest: list[str]) -> None:
        await call.answer("<h1>ok</h1>", status=500 if call.memory.count("asked") <= 6 else 200)

    async def always(call: Call, _rest: list[str]) -> None:
        await call.answer("<h1>no</h1>", status=500)

    site._site.routes["broken"], site._site.routes["always"] = broken, always
    urls = [*(site.url(f"/broken/{n}") for n in range(9)), site.url("/always")]
    crawled = await crawl(engine, reader(attempts=2), urls=urls, timing=WorkTiming(retry_first=300, outage_first=100))
    assert sorted(item["h1"] for item in crawled.items) == ["ok"] * 9
    assert crawled.only_death.reason.text == "HTTP 500"
    assert crawled.counters.snoozes > 0


async def test_sites_are_not_waited_for_if_one_says_so(engine: SqliteEngine) -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        urls = [f"http://127.0.0.1:{door.getsockname()[1]}/"]
        crawled = await crawl(engine, reader(site_down_after=0), urls=urls, timing=QUICK)
    assert crawled.only_death.reason.text == "connection refused"
    assert (crawled.counters.retries, crawled.counters.snoozes) == (2, 0)


async def test_an_invalid_certificate_is_not_tried_again(engine: SqliteEngine) -> None:
    """Not at its robots.txt either, which is what is asked for first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        async with _answering(door, PAGE, context):
            urls = [f"https://127.0.0.1:{door.getsockname()[1]}/"]
            crawled = await crawl(engine, reader(obey_robots=True), urls=urls, timing=QUICK)
    assert "TLS certificate not valid" in crawled.only_death.reason.text
    assert (crawled.counters.retries, crawled.counters.snoozes) == (0, 0)


# A worker that is offline


class Unplugged:
    """A fetcher whose network can be taken away."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self.plugged = False
        self.tries = 0

    async def fetch(self, fetch: Fetch, gate: Gate) -> Response:
        if not self.plugged:
            self.tries += 1
            raise FetchError("network not reachable", Blame.HOST, stage=Stage.NETWORK)
        return await self._fetcher.fetch(fetch, gate)

    async def close(self) -> None:
        await self._fetcher.close()


async def test_a_worker_that_is_offline_charges_nobody_and_others_go_on(
    engine: SqliteEngine, site: HostileSite, capsys: pytest.CaptureFixture[str]
) -> None:
    _serve_pages(site)
    urls = [site.url(f"/ok/{n}", host=f"127.0.0.{n}") for n in range(1, 21)]
    scraper = reader(attempts=1)
    await start_run(engine, scraper, urls=urls)
    plugs: list[Unplugged] = []

    def unplugged(fetcher: Fetcher) -> Fetcher:
        plugs.append(Unplugged(fetcher))
        return plugs[0]

    options = WorkerOptions(user_agent=AGENT, timing=WorkTiming(offline_first=50))
    ill = Worker(engine, [scraper], options, seed=1, around=unplugged)
    running = asyncio.create_task(ill.run())
    await until(lambda: plugs and plugs[0].tries >= 5, "it has looked again")
    counters = (await engine.reader.run("run")).counters
    assert (counters.dead, counters.retries, counters.snoozes) == (0, 0, 0), "no slot waits"
    await worker_for(engine, scraper, timing=QUICK).run()
    ill.stop()
    await running
    crawled = await result_of(engine)
    assert (len(crawled.items), crawled.counters.dead) == (20, 0)
    said = capsys.readouterr().out
    assert said.count("worker.offline") == 1


async def test_a_worker_that_is_online_again_goes_on(
    engine: SqliteEngine, site: HostileSite, capsys: pytest.CaptureFixture[str]
) -> None:
    _serve_pages(site)
    urls = [site.url(f"/ok/{n}", host=f"127.0.0.{n}") for n in range(1, 21)]
    scraper = reader(attempts=1)
    await start_run(engine, scraper, urls=urls)
    plugs: list[Unplugged] = []

    def unplugged(fetcher: Fetcher) -> Fetcher:
        plugs.append(Unplugged(fetcher))
        return plugs[0]

    options = WorkerOptions(user_agent=AGENT, drain=True, timing=WorkTiming(offline_first=50))
    running = asyncio.create_task(Worker(engine, [scraper], options, seed=1, around=unplugged).run())
    await until(lambda: plugs and plugs[0].tries >= 5, "it has looked again")
    plugs[0].plugged = True
    await running
    crawled = await result_of(engine)
    assert (len(crawled.items), crawled.counters.dead) == (20, 0)
    assert capsys.readouterr().out.count("worker.online") == 1


async def test_sites_that_nothing_leads_to_do_not_stop_a_worker_whose_network_is_fine(
    engine: SqliteEngine, site: HostileSite, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is ever sent to these addresses: no connection can be made to a group (multicast)."""
    if not has_default_route():
        pytest.skip("nothing leads out of this machine: it is offline")
    _serve_pages(site)
    away = [f"http://224.0.0.{n}/" for n in range(1, 6)]
    scraper = reader(attempts=1, site_down_after=0.3, obey_robots=False)
    crawled = await crawl(engine, scraper, urls=[*away, *(site.url(f"/ok/{n}") for n in range(3))], timing=QUICK)
    assert (len(crawled.items), crawled.counters.dead) == (3, 5), "and the run has ended"
    reasons = [letter.reason.text for letter in await engine.reader.dead("run")]
    assert all(reason.startswith("site down since ") and "not reachable" in reason for reason in reasons)
    assert "worker.offline" not in capsys.readouterr().out


# What they need


def _serve_pages(site: HostileSite) -> None:
    async def page(call: Call, _rest: list[str]) -> None:
        await call.answer("<h1>ok</h1>")

    site._site.routes["ok"] = page


async def _causes(engine: Engine, port: int) -> str | None:
    slots = await engine.reader.slots(f"127.0.0.1:{port}")
    return slots[0].cause if slots else None


async def _explained(engine: Engine, url: str) -> bool:
    """Whether `explain` and the estimate both tell that the site is down."""
    _, [(_, said)] = await look_up(engine, Settings(), url)
    eta = await estimate_by(engine, Settings())(await engine.reader.run("run"))
    told = any("direct backs off from the site: site down since 2" in cause.text for cause in said.causes)
    return told and eta is not None and "site down since 2" in (eta.cause or "")


@asynccontextmanager
async def _answering(
    door: socket.socket, answer: bytes, tls: ssl.SSLContext | None = None
) -> AsyncIterator[dict[str, list[float]]]:
    """A server on a socket that is bound, which says the same to all and hangs up. When it was connected to, by its
    address."""
    connections: dict[str, list[float]] = defaultdict(list)

    async def serve(reads: asyncio.StreamReader, writes: asyncio.StreamWriter) -> None:
        connections[writes.get_extra_info("sockname")[0]].append(time.monotonic())
        await reads.read(4096)
        writes.write(answer)
        writes.close()

    server = await asyncio.start_server(serve, sock=door, backlog=1000, ssl=tls)
    try:
        yield connections
    finally:
        server.close()

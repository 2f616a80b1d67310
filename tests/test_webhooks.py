"""Webhooks: whoever asked to be told is told, signed, at least once, whatever dies in between."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import script, shoal
from engine_urls import ENGINES, empty_store
from gateway_process import Served, open_shop, served
from shoal import Client, verify_webhook, webhook_secret
from shoal.engines import open_engine
from shoal.errors import BadWebhook, EngineFull, UsageError
from shoal.fetch.guard import Guard
from shoal.frontier.jobs import NewJob, Submitted
from shoal.frontier.protocol import NewRun
from shoal.frontier.sqlite.jobs import SqliteJobs
from shoal.gateway.answer import Problem
from shoal.gateway.options import GatewayOptions
from shoal.gateway.reach import Reach
from shoal.gateway.webhooks import Webhooks
from shoal.outcome import Blame
from shoal.task import Policy, RunState
from shoal.webhook import signed
from working import opened

PATIENCE = 90.0
CART = {"items": ["milk", "eggs"], "zipcode": "10001"}


class Receiver(ThreadingHTTPServer):
    """A client's own server. `answers`: one after the other, then 204; `None` = no answer until it is let go."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int | None] = []
        self.silent = 0
        self.let_go = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook?x=1"

    def wait_for(self, number: int) -> list[tuple[dict[str, str], bytes]]:
        end = time.monotonic() + PATIENCE
        while len(self.got) < number:
            assert time.monotonic() < end, f"{len(self.got)} of {number} have come"
            time.sleep(0.02)
        return self.got[:number]


class _Hook(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        status = self.server.answers.pop(0) if self.server.answers else 204
        if status is None:
            self.server.let_go.wait(30)
            return
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        assert self.path.startswith("/silent"), "a webhook is a POST, and does not follow redirects"
        self.server.silent += 1
        self.server.let_go.wait(PATIENCE)
        self.server.silent -= 1

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def receiving() -> Iterator[Receiver]:
    with Receiver() as receiver:
        thread = threading.Thread(target=receiver.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield receiver
        finally:
            receiver.let_go.set()
            receiver.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    with open_shop() as url:
        yield url


@pytest.fixture(scope="module")
def gateway(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("hooks"), shop, "--with-workers", webhook_attempts="2") as running:
        yield running
        assert running.stop() == 0
        log = (running.folder / "serve.log").read_text()
        assert "Traceback" not in log
        assert not [line for line in log.splitlines() if "robots" in line and "webhooks" in line]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def engine_of(gateway: Served) -> str:
    return f"sqlite:///{gateway.folder}/shoal.db"


@pytest.fixture(scope="module")
def key(gateway: Served) -> str:
    made = script("keys", "create", "website", "--engine", engine_of(gateway), "--json")
    document = json.loads(made.stdout)
    secret: str = document["key"]
    assert document["webhook_secret"] == webhook_secret(secret)
    return secret


def deliveries(gateway: Served) -> str:
    """The run of today's deliveries."""
    return f"webhooks-{time.strftime('%Y%m%d', time.gmtime())}"


class TestDelivery:
    def test_the_end_of_a_job_is_told_signed(self, gateway: Served, key: str) -> None:
        with receiving() as receiver:
            job_id = gateway.submit(f"/cart?callback={receiver.url}", CART, Authorization=f"Bearer {key}")
            ((headers, body),) = receiver.wait_for(1)
            assert headers["webhook-id"] == job_id
            assert headers["content-type"] == "application/json"
            assert "shoal-key" not in headers
            told = verify_webhook(webhook_secret(key), headers, body)
            assert told == verify_webhook(key, headers, body)
            assert (told["type"], told["data"]["job_id"]) == ("job.complete", job_id)
            assert told["data"]["progress"] == "2/2 items completed"
            assert gateway.ask(told["data"]["location"], Authorization=f"Bearer {key}").body["status"] == "complete"

    def test_every_kind_of_end_is_told(self, gateway: Served, key: str, shop: str) -> None:
        """Also while the same host keeps a crawler waiting: the jobs' clock is not that of the messages."""
        with receiving() as receiver:
            who = {"Authorization": f"Bearer {key}"}
            place = receiver.url.replace("hook?x=1", "silent")
            orders: list[dict[str, Any]] = [
                {"scraper": "plain", "urls": [place, f"{place}?2"]},
                {"scraper": "sick", "input": {"word": "x"}},
                {"scraper": "plain", "urls": [f"{shop}books/none"]},
            ]
            ids: list[str] = []
            for order in orders:
                ids.append(gateway.submit("/jobs", {**order, "callback": receiver.url}, **who))
                until(lambda: receiver.silent == 1)
            cancelled, failed, dead = ids
            receiver.wait_for(2)
            assert gateway.ask(f"/jobs/{cancelled}", method="DELETE", **who).status == 200
            told = [verify_webhook(key, headers, body) for headers, body in receiver.wait_for(3)]
            ends = {each["data"]["job_id"]: each["type"] for each in told}
            assert ends == {failed: "job.failed", dead: "job.failed", cancelled: "job.cancelled"}
            assert receiver.silent == 1

    def test_what_fails_is_tried_again_and_then_a_dead_letter(self, gateway: Served, key: str) -> None:
        with receiving() as receiver:
            receiver.answers = [500]
            who = {"Authorization": f"Bearer {key}"}
            with Client(gateway.url, api_key=key) as client:
                job_id = client.submit("cart", CART, callback=receiver.url).job_id
            first, second = receiver.wait_for(2)
            assert {first[0]["webhook-id"], second[0]["webhook-id"]} == {job_id}
            assert first[1] == second[1]
            assert first[0]["webhook-timestamp"] < second[0]["webhook-timestamp"], "each attempt is signed anew"
            for headers, body in (first, second):
                verify_webhook(key, headers, body)

            receiver.answers = [404, 302]
            lost = gateway.submit("/jobs", {"scraper": "cart", "input": CART, "callback": receiver.url}, **who)
            receiver.wait_for(4)
            engine = engine_of(gateway)
            letters: list[dict[str, Any]] = []
            end = time.monotonic() + PATIENCE
            while not letters:
                assert time.monotonic() < end
                letters = json.loads(shoal("dead", "list", deliveries(gateway), "--engine", engine, "--json").stdout)
            assert [(each["url"], each["reason"], each["attempts"]) for each in letters] == [
                (receiver.url, "HTTP 302", 2)
            ]
            assert shoal("dead", "requeue", deliveries(gateway), "--engine", engine).returncode == 0
            assert receiver.wait_for(5)[4][0]["webhook-id"] == lost

    def test_deliveries_are_nobodys_jobs(self, gateway: Served, key: str) -> None:
        with receiving() as receiver:
            gateway.submit(f"/cart?callback={receiver.url}", CART, Authorization=f"Bearer {key}")
            receiver.wait_for(1)
        jobs = gateway.ask("/jobs", Authorization=f"Bearer {key}").body["jobs"]
        assert {job["scraper"] for job in jobs} <= {"cart", "sick", "plain"}
        assert gateway.ask(f"/jobs/{deliveries(gateway)}/items", Authorization=f"Bearer {key}").status == 404
        assert gateway.ask("/health").body["parts"]["workers"]["seen"] == 1, "the gateway itself fetches no pages"

    @pytest.mark.parametrize(
        ("callback", "status", "why"),
        [
            ("http://10.0.0.1/hook", 422, "10.0.0.1 is a private address"),
            ("http://169.254.169.254/", 422, "metadata"),
            ("ftp://a.example/", 422, "not http"),
            ("", 422, "empty"),
            ("hook", 422, "does not begin with"),
            ("http://a.example/\x00", 422, "control character"),
        ],
    )
    def test_a_callback_that_cannot_be_called(
        self, gateway: Served, key: str, callback: str, status: int, why: str
    ) -> None:
        order = {"scraper": "cart", "input": CART, "callback": callback}
        answer = gateway.ask("/jobs", order, Authorization=f"Bearer {key}")
        assert (answer.status, answer.body["type"]) == (status, "tag:shoal,2026:bad-callback")
        assert why in answer.body["detail"]

    def test_a_callback_is_part_of_what_was_asked_for(self, gateway: Served, key: str) -> None:
        who = {"Authorization": f"Bearer {key}", "Idempotency_Key": "once"}
        with receiving() as receiver:
            first = gateway.ask(f"/cart?callback={receiver.url}", CART, **who)
            assert gateway.ask(f"/cart?callback={receiver.url}", CART, **who).body["job_id"] == first.body["job_id"]
            assert gateway.ask(f"/cart?callback={receiver.url}2", CART, **who).status == 422
            receiver.wait_for(1)
            assert len(receiver.got) == 1


class TestDeath:
    def test_nothing_is_lost_whenever_a_gateway_is_killed(self, shop: str, tmp_path: Path) -> None:
        """Killed before the job ends, after it has ended, and while the message is on its way."""
        engine = f"sqlite:///{tmp_path}/shoal.db"
        key = json.loads(shoal("keys", "create", "website", "--engine", engine, "--json").stdout)["key"]
        with receiving() as receiver:
            receiver.answers = [None]
            with served(tmp_path, shop) as gateway:
                job_id = gateway.submit(f"/cart?callback={receiver.url}", CART, Authorization=f"Bearer {key}")
                kill(gateway)
            work(engine)
            with served(tmp_path, shop) as gateway:
                receiver.wait_for(1)
                kill(gateway)
            with served(tmp_path, shop) as gateway:
                first, second = receiver.wait_for(2)
                assert verify_webhook(key, *first)["data"]["job_id"] == job_id
                assert verify_webhook(key, *second)["data"]["job_id"] == job_id
                with closing(sqlite3.connect(tmp_path / "shoal.db")) as store:
                    until(lambda: store.execute("SELECT count(*) FROM task").fetchone() == (0,))
            assert len(receiver.got) == 2


def ended_job(name: str, callback: str) -> NewJob:
    """A job that has failed before it began, and is to be told of."""
    return NewJob(NewRun(name, "cart", Policy(), queue="jobs:cart"), error="no", callback=callback.encode())


class Full(SqliteJobs):
    """The jobs of a store that takes no more."""

    async def submit(self, jobs: Sequence[NewJob]) -> Sequence[Submitted]:
        raise EngineFull("no space left")


class TestParts:
    async def test_a_delivery_connects_to_public_addresses_only(self, tmp_path: Path) -> None:
        """The door cannot tell where a name will lead: this callback got past it."""
        with receiving() as receiver:
            async with opened(tmp_path) as store:
                await store.jobs.submit([ended_job("cart-1", receiver.url)])
                webhooks = Webhooks(store, Reach(store.reader.now, 20), GatewayOptions(), lambda _: "whsec_AAAA")
                assert await webhooks.dispatch() == 1
                delivering = asyncio.ensure_future(webhooks.run())
                (run,) = [run for run in await store.reader.runs() if run.scraper == "webhooks"]
                async with asyncio.timeout(20):
                    while not (letters := await store.reader.dead(run.run_id)):  # noqa: ASYNC110 - another's doing
                        await asyncio.sleep(0.02)
                delivering.cancel()
                await asyncio.gather(delivering, return_exceptions=True)
            assert [(letter.reason.blame, letter.attempts) for letter in letters] == [(Blame.POLICY, 0)]
            assert receiver.got == []

    async def test_a_callback_is_cleared_only_when_its_delivery_is_stored(self, tmp_path: Path) -> None:
        async with opened(tmp_path) as store:
            await store.jobs.submit([ended_job("cart-1", "http://a.example/")])
            good, store.jobs = store.jobs, Full(store.jobs._writer, store.jobs._reader)
            webhooks = Webhooks(store, Reach(store.reader.now, 20), GatewayOptions(), lambda _: None)
            with pytest.raises(Problem):
                await webhooks.dispatch()
            assert len(await store.jobs.callbacks()) == 1
            store.jobs = good
            again = Webhooks(store, Reach(store.reader.now, 20), GatewayOptions(), lambda _: None)
            assert await again.dispatch() == 1
            assert list(await store.jobs.callbacks()) == []

    async def test_a_run_of_deliveries_that_was_cancelled_stops_no_others(self, tmp_path: Path) -> None:
        async with opened(tmp_path) as store:
            webhooks = Webhooks(store, Reach(store.reader.now, 20), GatewayOptions(), lambda _: None)
            waiting: list[list[int]] = []
            for number in range(3):
                await store.jobs.submit([ended_job(f"cart-{number}", f"http://a.example/{number}")])
                assert await webhooks.dispatch() == 1
                runs = [run for run in await store.reader.runs() if run.scraper == "webhooks"]
                waiting.append([run.counters.waiting for run in runs if run.state is RunState.RUNNING])
                if number == 1:
                    await store.frontier.cancel_run(runs[0].run_id)
            assert waiting == [[1], [2], [1]]


@pytest.mark.parametrize("kind", ENGINES)
async def test_two_gateways_at_once_deliver_once_on_every_engine(kind: str, tmp_path: Path) -> None:
    """Both have seen the same ends and both make the deliveries; one of each pair has no effect."""
    secret = webhook_secret("shoal_key")
    options = GatewayOptions(guard=Guard([ip_network("127.0.0.0/8")]))
    with receiving() as receiver, empty_store(kind, tmp_path) as url:
        async with AsyncExitStack() as stack:
            gateways = []
            for _ in range(2):
                store = await open_engine(url)
                stack.push_async_callback(store.close)
                gateways.append(Webhooks(store, Reach(store.reader.now, 20), options, lambda _: secret))
            names = [f"cart-{number}" for number in range(5)]
            await store.jobs.submit([ended_job(name, receiver.url) for name in names])
            seen = [await store.jobs.callbacks() for _ in gateways]
            assert [len(each) for each in seen] == [5, 5]
            await asyncio.gather(*(gateway.dispatch() for gateway in gateways))
            assert list(await store.jobs.callbacks()) == []
            delivering = [asyncio.ensure_future(gateway.run()) for gateway in gateways]
            await asyncio.to_thread(receiver.wait_for, 5)
            (run,) = [run for run in await store.reader.runs() if run.scraper == "webhooks"]
            while (await store.reader.run(run.run_id)).counters.done < 5:  # noqa: ASYNC110 - another's doing
                await asyncio.sleep(0.02)
            for each in delivering:
                each.cancel()
            await asyncio.gather(*delivering, return_exceptions=True)
            counts = (await store.reader.run(run.run_id)).counters
            assert (counts.done, counts.dead, counts.remaining) == (5, 0, 0)
    told = [verify_webhook(secret, headers, body)["data"]["job_id"] for headers, body in receiver.got]
    assert sorted(told) == names


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def kill(gateway: Served) -> None:
    os.kill(gateway.process.pid, signal.SIGKILL)
    gateway.process.wait(30)


def work(engine: str) -> None:
    """Finish what waits, as a worker elsewhere."""
    Path("shoal.toml").write_text('[guard]\nallow_networks = ["127.0.0.0/8"]\n')
    done = shoal("worker", "shop.py", "--engine", engine, "--drain", "--quiet")
    assert done.returncode == 0, done.stderr


class TestVerifying:
    SECRET = webhook_secret("shoal_key")
    NOW = 1_700_000_000

    def headers(self, body: bytes = b"{}") -> dict[str, str]:
        return signed(self.SECRET, "cart-1", self.NOW, body)

    def test_an_example_of_the_standard(self) -> None:
        """From the specification of Standard Webhooks: others compute the same."""
        secret = "whsec_plJ3nmyCDGBKInavdOK15jsl"  # noqa: S105 - as published
        body = b'{"event_type":"ping","data":{"success":true}}'
        made = signed(secret, "msg_loFOjxBNrRLzqYUf", 1731705121, body)
        assert made["webhook-signature"] == "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="

    @given(st.binary(max_size=50), st.integers(0, 2**33))
    def test_what_was_signed_is_verified(self, noise: bytes, moment: int) -> None:
        body = json.dumps({"noise": noise.hex()}).encode()
        headers = signed(self.SECRET, "cart-1", moment, body)
        shouted = {name.upper(): value for name, value in headers.items()}
        assert verify_webhook(self.SECRET, shouted, body, now=moment + 299) == {"noise": noise.hex()}

    @pytest.mark.parametrize(
        ("change", "why"),
        [
            ({"webhook-id": "cart-2"}, "signature"),
            ({"webhook-timestamp": "1700000001"}, "signature"),
            ({"webhook-signature": ""}, "signature"),
            ({"webhook-signature": "v1,AAAA v1a,x é"}, "signature"),
        ],
    )
    def test_any_change_is_noticed(self, change: dict[str, str], why: str) -> None:
        with pytest.raises(BadWebhook, match=why):
            verify_webhook(self.SECRET, {**self.headers(), **change}, b"{}", now=self.NOW)

    def test_other_bodies_secrets_and_times(self) -> None:
        good = self.headers()
        assert verify_webhook("shoal_key", good, b"{}", now=self.NOW) == {}
        rotated = {**good, "webhook-signature": f"v1,AAAA {good['webhook-signature']}"}
        assert verify_webhook(self.SECRET, rotated, b"{}", now=self.NOW) == {}
        for secret, body, now in (
            (self.SECRET, b"{} ", self.NOW),
            (webhook_secret("other"), b"{}", self.NOW),
            (self.SECRET, b"{}", self.NOW + 301),
            (self.SECRET, b"{}", self.NOW - 301),
        ):
            with pytest.raises(BadWebhook):
                verify_webhook(secret, good, body, now=now)
        with pytest.raises(BadWebhook, match="webhook-id is missing"):
            verify_webhook(self.SECRET, {}, b"{}")
        with pytest.raises(UsageError, match="base64"):
            verify_webhook("whsec_?", good, b"{}")

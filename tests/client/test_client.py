"""`shoal.Client` and `shoal.AsyncClient` with a real gateway, and with a network that loses things on the way."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from pydantic import BaseModel

from servers.proxy import Proxy, running_proxy
from shoal import AsyncClient, Client
from shoal.client.job import Job
from shoal.errors import GatewayUnavailable, JobFailed, JobUnfinished, RequestRefused, UnknownJob
from support.command_line import script
from support.gateway_process import Served, open_shop, served

NOBODY = "cart-" + "0" * 32


class Cart(BaseModel):
    items: list[str]
    zipcode: str


CART = Cart(items=["milk", "eggs", "bread"], zipcode="10001")


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    with open_shop() as url:
        yield url


@pytest.fixture(scope="module")
def gateway(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("client"), shop, "--with-workers") as running:
        yield running


class Keyed(NamedTuple):
    """A gateway without workers, where jobs wait, and a key that it asks for."""

    url: str
    api_key: str


@pytest.fixture(scope="module")
def idle(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyed]:
    folder = tmp_path_factory.mktemp("idle")
    with served(folder, shop) as running:
        made = script("keys", "create", "website", "--engine", f"sqlite:///{folder}/shoal.db")
        yield Keyed(running.url, next(word for word in made.stdout.split() if word.startswith("shoal_")))


@pytest.fixture
def client(gateway: Served) -> Iterator[Client]:
    with Client(gateway.url) as opened:
        yield opened


@pytest.fixture
def proxy(gateway: Served) -> Iterator[Proxy]:
    with running_proxy(int(gateway.url.rsplit(":", 1)[1])) as running:
        yield running


class TestClient:
    def test_from_submission_to_results(self, client: Client) -> None:
        job = client.submit("cart", CART)
        assert job.status == "queued"
        assert (job.position or 0) >= 1
        heard: list[Job] = []
        done = client.wait(job.job_id, on_news=heard.append)
        assert (done.status, done.progress) == ("complete", "3/3 items completed")
        assert isinstance(done.results, dict)
        assert list(done.results) == CART.items
        assert heard[-1] == done == client.result(job.job_id)
        records = list(client.items(job.job_id))
        assert [record.item for record in records if record.group == "eggs"] == done.results["eggs"]
        assert len(records) == done.items

    def test_mappings_and_urls(self, client: Client, shop: str) -> None:
        one = client.submit("cart", {"items": ["tea"], "zipcode": "1"})
        two = client.submit("plain", urls=[shop, "ftp://x/"])
        assert [refusal.url for refusal in two.refused] == ["ftp://x/"]
        assert isinstance(client.wait(one.job_id).results, dict)
        assert client.wait(two.job_id).results == [{"title": "Books"}]

    def test_the_same_key_is_the_same_job(self, client: Client) -> None:
        first, again = (client.submit("cart", CART, idempotency_key="a key of one's own") for _ in range(2))
        assert first.job_id == again.job_id

    def test_what_ends_badly(self, client: Client, idle: Keyed) -> None:
        failed = client.submit("sick", {"word": "milk"})
        with pytest.raises(JobFailed, match="no milk today") as caught:
            client.wait(failed.job_id)
        assert caught.value.job == client.result(failed.job_id)
        with Client(idle.url, api_key=idle.api_key) as patient:
            slow = patient.submit("cart", CART)
            with pytest.raises(JobUnfinished, match="0/3 items completed"):
                patient.wait(slow.job_id, within=0.1)
            assert patient.cancel(slow.job_id).status == "cancelled"
            with pytest.raises(JobFailed, match="has been cancelled"):
                patient.wait(slow.job_id)

    def test_what_is_wrong_is_said(self, client: Client) -> None:
        with pytest.raises(RequestRefused, match="the field 'items'") as caught:
            client.submit("cart", {"items": 5, "zipcode": "1"})
        assert (caught.value.status, caught.value.kind) == (422, "bad-input")
        assert caught.value.title == "Unprocessable Entity"
        with pytest.raises(RequestRefused, match="There is no scraper 'nobody' here"):
            client.submit("nobody", {})
        with pytest.raises(UnknownJob, match=r"There is no such job\."):
            client.result(NOBODY)
        with pytest.raises(RequestRefused, match="holders of an API key"):
            list(client.jobs())

    def test_threads_share_a_client(self, client: Client) -> None:
        results: dict[int, Job] = {}

        def one(number: int) -> None:
            job = client.submit("cart", {"items": [f"thing{number}"], "zipcode": "1"})
            results[number] = client.wait(job.job_id)

        threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {number: list(job.results or ()) for number, job in results.items()} == {
            number: [f"thing{number}"] for number in range(8)
        }

    def test_nothing_heavy_is_loaded_for_it(self) -> None:
        program = "import sys; from shoal import Client; print({'aiohttp', 'pydantic'} & set(sys.modules) or 'light')"
        loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert loaded.stdout.strip() == "light"


class TestAsyncClient:
    async def test_many_at_once(self, gateway: Served) -> None:
        async with AsyncClient(gateway.url) as client:

            async def one(number: int) -> None:
                job = await client.submit("cart", {"items": [f"thing{number}"], "zipcode": "2"})
                heard: list[Job] = []
                done = await client.wait(job.job_id, on_news=heard.append)
                assert list(done.results or ()) == [f"thing{number}"]
                assert heard[-1] == done == await client.result(job.job_id)
                assert len([record async for record in client.items(job.job_id)]) == done.items

            await asyncio.gather(*(one(number) for number in range(20)))

    async def test_errors(self, idle: Keyed) -> None:
        async with AsyncClient(idle.url, api_key=idle.api_key) as client:
            with pytest.raises(RequestRefused, match="the field 'items'"):
                await client.submit("cart", {"items": 5, "zipcode": "1"})
            slow = await client.submit("cart", CART)
            with pytest.raises(JobUnfinished):
                await client.wait(slow.job_id, within=0.1)
            assert (await client.cancel(slow.job_id)).status == "cancelled"
            assert slow.job_id in [job.job_id async for job in client.jobs()]

    async def test_an_answer_that_was_lost_on_the_way(self, proxy: Proxy) -> None:
        async with AsyncClient(f"http://127.0.0.1:{proxy.port}") as client:
            proxy.lose_answer(to=b"idempotency-key")
            job = await client.submit("cart", CART, idempotency_key="lost, and sent again")
            assert proxy.lost == 1
            again = await client.submit("cart", CART, idempotency_key="lost, and sent again")
            assert again.job_id == job.job_id
            proxy.cut()
            assert (await client.wait(job.job_id)).status == "complete"


class TestTrouble:
    def test_an_answer_that_was_lost_on_the_way(self, gateway: Served, proxy: Proxy) -> None:
        with Client(f"http://127.0.0.1:{proxy.port}") as client, Client(gateway.url) as direct:
            proxy.lose_answer(to=b"idempotency-key")
            job = client.submit("cart", CART, idempotency_key="lost, and sent once more")
            assert proxy.lost == 1
            again = direct.submit("cart", CART, idempotency_key="lost, and sent once more")
            assert again.job_id == job.job_id

    def test_a_wait_goes_on_after_the_line_was_cut(self, idle: Keyed) -> None:
        with (
            running_proxy(int(idle.url.rsplit(":", 1)[1])) as proxy,
            Client(f"http://127.0.0.1:{proxy.port}", api_key=idle.api_key) as client,
        ):
            job = client.submit("cart", CART)
            heard: list[Job] = []

            def cut_then_cancel(news: Job) -> None:
                heard.append(news)
                if len(heard) == 1:
                    proxy.refuse()
                    threading.Timer(0.5, proxy.resume).start()
                    threading.Timer(0.6, client.cancel, [job.job_id]).start()

            with pytest.raises(JobFailed, match="cancelled"):
                client.wait(job.job_id, on_news=cut_then_cancel)
            assert heard[-1].status == "cancelled"

    def test_nobody_there(self, proxy: Proxy) -> None:
        proxy.refuse()
        with (
            Client(f"http://127.0.0.1:{proxy.port}", patience=0.5) as client,
            pytest.raises(GatewayUnavailable, match=r"The gateway does not answer \(.+\)\."),
        ):
            client.submit("cart", CART)
        assert proxy.connections >= 2


def test_keys(idle: Keyed) -> None:
    with Client(idle.url, api_key="shoal_wrong") as stranger, pytest.raises(RequestRefused, match="not known"):
        stranger.submit("cart", CART)
    with Client(idle.url) as nobody, pytest.raises(RequestRefused, match="needs an API key"):
        nobody.submit("cart", CART)
    with Client(idle.url, api_key=idle.api_key) as client:
        submitted = [client.submit("cart", CART).job_id for _ in range(3)]
        assert [job.job_id for job in client.jobs()][:3] == submitted[::-1]

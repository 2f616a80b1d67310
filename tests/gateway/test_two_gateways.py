"""Two gateways behind nginx, as the example has them: either can be killed, and nobody who waits is any the worse."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import pytest

from servers.nginx import running_nginx
from servers.proxies import free_port, need
from servers.proxy import Proxy, running_proxy
from shoal import AsyncClient, Client
from shoal.client.job import Job
from shoal.config.sections import ServeSettings
from shoal.demo.grocer import find_products
from shoal.frontier.open import open_engine
from support.gateway_process import Reply, Served, serving

CART = Path(__file__).parents[2] / "examples" / "cart"
CONFIGURATION = (CART / "nginx.conf").read_text()
CLIENTS = 12
MILK = {"items": ["milk"], "zipcode": "10001"}
QUICK = {"SHOAL_SCRAPERS__CART__DELAY": "0", "SHOAL_SCRAPERS__CART__CONCURRENCY": "4"}
"""The shop is ours, and does not mind."""


def configured(port: int, first: int, second: int) -> str:
    """The example's configuration, at other ports."""
    text = CONFIGURATION
    for old, new in ((8000, port), (8001, first), (8002, second)):
        assert text.count(f"127.0.0.1:{old}") == 1
        text = text.replace(f"127.0.0.1:{old}", f"127.0.0.1:{new}")
    return text


@dataclass(slots=True)
class Twice:
    """Two gateways on one store, each behind a line that can be broken, and nginx in front of both (`front`)."""

    front: Served
    gateways: list[Served]
    lines: list[Proxy]

    def jobs(self) -> list[str]:
        """The ids of all jobs that there are."""

        async def read() -> list[str]:
            opened = await open_engine(engine(self.front.folder))
            try:
                return [run.run_id for run in await opened.reader.runs()]
            finally:
                await opened.close()

        return asyncio.run(read())


def engine(folder: Path) -> str:
    return f"sqlite:///{folder}/shoal.db"


@contextmanager
def gateway(folder: Path, shop: str, port: int) -> Iterator[Served]:
    variables = {**QUICK, "SHOAL_DEMO_URL": shop}
    with serving(folder, "cart.py", "--port", str(port), engine=engine(folder), at=CART, **variables) as running:
        yield running


@pytest.fixture(scope="module")
def twice(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twice]:
    folder = tmp_path_factory.mktemp("twice")
    with ExitStack() as stack:
        gateways = [stack.enter_context(gateway(folder, shop, 0)) for _ in range(2)]
        lines = [stack.enter_context(running_proxy(port_of(each))) for each in gateways]
        port = free_port()
        stack.enter_context(running_nginx(folder, configured(port, lines[0].port, lines[1].port), port))
        yield Twice(Served(f"http://127.0.0.1:{port}", gateways[0].process, folder), gateways, lines)


def port_of(gateway: Served) -> int:
    return int(gateway.url.rsplit(":", 1)[1])


def submit_until_an_answer_is_lost(twice: Twice, line: Proxy, *, keyed: bool) -> list[Reply]:
    """The answers that the client got; the last one is to the submission whose first answer was lost."""
    line.lose_answer(to=b"POST /cart")
    before, answers = line.lost, []
    while line.lost == before:
        key = {"Idempotency_Key": str(uuid.uuid4())} if keyed else {}
        answers.append(twice.front.ask("/cart", MILK, **key))
    return answers


def test_a_submission_whose_answer_is_lost_is_sent_to_the_other_if_it_has_a_key(twice: Twice) -> None:
    before = len(twice.jobs())
    answers = [answer for line in twice.lines for answer in submit_until_an_answer_is_lost(twice, line, keyed=True)]
    assert {answer.status for answer in answers} == {202}
    assert sum("idempotency-replayed" in answer.headers for answer in answers) == 2
    assert len(twice.jobs()) == before + len(answers)


def test_without_a_key_it_is_not(twice: Twice) -> None:
    before = len(twice.jobs())
    *others, lost = submit_until_an_answer_is_lost(twice, twice.lines[0], keyed=False)
    assert lost.status == 502
    assert {answer.status for answer in others} <= {202}
    assert len(twice.jobs()) == before + len(others) + 1


def test_who_waits_is_not_told_that_a_line_broke(twice: Twice) -> None:
    job_id = twice.front.submit("/cart", MILK)

    async def wait() -> None:
        async with AsyncClient(twice.front.url, patience=0) as client:
            asking = [asyncio.ensure_future(client.wait(job_id, within=120.0)) for _ in range(8)]
            while sum([await asyncio.to_thread(_waiting_at, each) for each in twice.gateways]) < 8:
                assert not any(each.done() for each in asking)
            twice.lines[0].cut()
            twice.front.ask(f"/jobs/{job_id}", method="DELETE")
            ended = await asyncio.gather(*asking, return_exceptions=True)
            assert {type(each).__name__ for each in ended} == {"JobFailed"}, ended

    asyncio.run(wait())


def _waiting_at(gateway: Served) -> int:
    waiting: int = gateway.ask("/health").body["parts"]["gateway"]["waiting"]
    return waiting


def test_events_arrive_when_they_happen(twice: Twice) -> None:
    job_id = twice.front.submit("/cart", MILK)
    with urlopen(f"{twice.front.url}/jobs/{job_id}/events", timeout=60) as stream:  # noqa: S310 - our own server
        assert stream.readline() == b"event: status\n"
        twice.front.ask(f"/jobs/{job_id}", method="DELETE")
        assert b"event: end\n" in stream.read()


@contextmanager
def commands_of_the_readme(folder: Path, ports: dict[str, str]) -> Iterator[None]:
    """What the README says to type, each line in a shell of its own, in a copy of the example at other ports."""
    block = re.findall(r"```sh\n(.*?)```", (CART / "README.md").read_text(), re.DOTALL)[-1]
    configuration = folder / "nginx.conf"
    for old, new in ports.items():
        block = block.replace(old, new)
        configuration.write_text(configuration.read_text().replace(f":{old}", f":{new}"))
    environment = {
        **os.environ, **QUICK,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SHOAL_DEMO_URL": f"http://127.0.0.1:{ports['8808']}/",
    }  # fmt: skip
    shop, *lines = block.splitlines()
    assert [line.split()[0] for line in (shop, *lines)] == ["python", "shoal", "shoal", "shoal", "mkdir"]
    running = [
        subprocess.Popen(["sh", "-c", line], cwd=folder, env=environment, start_new_session=True)
        for line in (f"{shop} --port {ports['8808']}", *lines)
    ]
    try:
        yield
    finally:
        for process in running:
            os.killpg(process.pid, signal.SIGTERM)
        for process in running:
            process.wait(120)


def test_the_commands_of_the_readme_are_a_whole_service(tmp_path: Path) -> None:
    need("nginx", "nginx-light")
    folder = shutil.copytree(CART, tmp_path / "cart", ignore=shutil.ignore_patterns(".*", "shoal.db*", "__pycache__"))
    ports = {name: str(free_port()) for name in ("8000", "8001", "8002", "8808")}
    with commands_of_the_readme(folder, ports), Client(f"http://127.0.0.1:{ports['8000']}") as client:
        done = client.wait(client.submit("cart", MILK).job_id)
        assert isinstance(done.results, dict)
        found = [product["title"] for product in done.results["milk"]]
        assert found == [card.title for card in find_products("milk", "10001")]


def test_nginx_is_more_patient_than_a_gateway() -> None:
    [seconds] = re.findall(r"proxy_read_timeout (\d+)s;", CONFIGURATION)
    assert float(seconds) > ServeSettings().max_wait


class Clients:
    """Many at once, who submit one cart after the other, each its own, until told that it is enough."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._enough = asyncio.Event()
        self._news = asyncio.Event()
        self.begun = 0
        self.submitted: list[str] = []
        self.done = 0

    async def run(self) -> None:
        async with AsyncClient(self._url) as client, asyncio.TaskGroup() as group:
            for number in range(CLIENTS):
                group.create_task(self._submit_until_enough(client, number))

    async def have_done(self, more: int) -> None:
        """Return when so many more carts are done."""
        until = self.done + more
        while self.done < until:
            self._news.clear()
            await self._news.wait()

    def stop(self) -> None:
        self._enough.set()

    async def _submit_until_enough(self, client: AsyncClient, number: int) -> None:
        while not self._enough.is_set():
            self.begun += 1
            item, zipcode = f"thing {self.begun}", f"{10000 + self.begun}"
            job = await client.submit("cart", {"items": [item], "zipcode": zipcode})
            self.submitted.append(job.job_id)
            heard: list[Job] = []
            end = await client.wait(job.job_id, on_news=heard.append if number % 2 else None)
            assert isinstance(end.results, dict)
            found = [(product["title"], product["price"]) for product in end.results[item]]
            assert found == [(card.title, card.price) for card in find_products(item, zipcode)]
            self.done += 1
            self._news.set()


@contextmanager
def worker(folder: Path, shop: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal", "worker", "cart.py", "--engine", engine(folder), "--quiet"],
        cwd=CART,
        env={**os.environ, **QUICK, "SHOAL_DEMO_URL": shop},
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def test_either_is_killed_while_clients_submit_and_wait(shop: str, twice: Twice) -> None:
    """The last test of this module: it leaves one of the gateways dead."""
    before = set(twice.jobs())

    async def kill_one_after_the_other(stack: ExitStack) -> Clients:
        clients = Clients(twice.front.url)
        async with asyncio.TaskGroup() as group:
            group.create_task(clients.run())
            for number, victim in enumerate(twice.gateways):
                await clients.have_done(CLIENTS)
                victim.process.send_signal(signal.SIGKILL)
                print(f"killed with {clients.begun - clients.done} carts under way, {clients.done} done")
                assert clients.begun > clients.done
                await asyncio.to_thread(victim.process.wait)
                await clients.have_done(CLIENTS)
                if number == 0:
                    again = gateway(victim.folder, shop, port_of(victim))
                    await asyncio.to_thread(stack.enter_context, again)
            clients.stop()
        return clients

    with ExitStack() as stack:
        stack.enter_context(worker(twice.front.folder, shop))
        clients = asyncio.run(kill_one_after_the_other(stack))
        jobs = set(twice.jobs()) - before
    print(f"{clients.done} carts, each with its own products, made {len(jobs)} jobs")
    assert clients.done == clients.begun == len(jobs)
    assert set(clients.submitted) == jobs, "each submission made one job"

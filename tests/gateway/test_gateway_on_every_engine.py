"""The gateway on each engine: two processes on one store, a store that dies and comes back, a gateway that dies between
the commit and its answer."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from servers.postgres import PostgresServer, need_programs
from servers.proxy import running_proxy
from servers.redis import RedisServer, running_redis
from support.command_line import shoal
from support.engine_urls import ENGINES
from support.gateway_process import Reply, Served, problem, served
from support.waiting import wait_until

CART = {"items": ["milk", "eggs"], "zipcode": "10001"}

LONG = {"scraper": "late", "urls": [f"http://127.0.0.2:9/{number}" for number in range(3)]}
"""A minute between pages that nobody serves, at a site of its own."""


@dataclass
class Stage:
    """Two gateways on one store, with a worker at the first; results made at the second are soon gone.

    `server` can be killed and started again; None = it is a file.
    """

    url: str
    server: PostgresServer | RedisServer | None
    one: Served
    two: Served
    ada: str
    bob: str


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    server = PostgresServer(need_programs())
    try:
        server.create()
        yield server
    finally:
        server.destroy()


@pytest.fixture(scope="module", params=ENGINES)
def stage(request: pytest.FixtureRequest, shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    one, two = (tmp_path_factory.mktemp(f"{request.param}-{name}") for name in ("one", "two"))
    with ExitStack() as stack:
        server: PostgresServer | RedisServer | None = None
        if request.param == "postgresql":
            server = stack.enter_context(running_postgres())
            url = server.url()
        elif request.param == "redis":
            server = stack.enter_context(running_redis())
            url = server.url
        else:
            url = f"sqlite:///{one}/shoal.db"
        keys = [shoal("keys", "create", name, "--engine", url).stdout.strip() for name in ("ada", "bob")]
        yield Stage(
            url,
            server,
            stack.enter_context(served(one, shop, "--with-workers", engine=url)),
            stack.enter_context(served(two, shop, engine=url, results_ttl="4", remember="4")),
            *(f"Bearer {key}" for key in keys),
        )


def test_a_job_of_one_gateway_is_waited_for_at_the_other(stage: Stage) -> None:
    accepted = stage.one.ask("/cart", CART, Authorization=stage.ada)
    assert (accepted.status, accepted.body["status"]) == (202, "queued")
    job_id = accepted.body["job_id"]
    done = stage.two.finished(job_id, Authorization=stage.ada)
    assert (done["status"], done["progress"], list(done["results"])) == (
        "complete",
        "2/2 items completed",
        CART["items"],
    )
    assert all("milk" in product["title"] for product in done["results"]["milk"])
    assert stage.one.ask(f"/results/{job_id}", Authorization=stage.ada).body == done
    page = stage.two.ask(f"/jobs/{job_id}/items", Authorization=stage.ada).body
    assert len(page["items"]) == done["items"]


def test_many_at_once_get_their_own_results(stage: Stage) -> None:
    def one(number: int) -> None:
        job_id = stage.one.submit("/cart", {"items": [f"thing{number}"], "zipcode": "1"}, Authorization=stage.ada)
        results = (stage.one, stage.two)[number % 2].finished(job_id, Authorization=stage.ada)["results"]
        assert list(results) == [f"thing{number}"]
        assert all(f"thing{number}," in product["title"] for product in results[f"thing{number}"])

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(one, range(20)))


def test_a_key_used_at_both_gateways_at_once_makes_one_job(stage: Stage) -> None:
    key = str(uuid.uuid4())

    def submit(number: int) -> Reply:
        return (stage.one, stage.two)[number % 2].ask("/cart", CART, Authorization=stage.ada, Idempotency_Key=key)

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(submit, range(10)))
    assert {answer.status for answer in answers} == {202}
    assert len({answer.body["job_id"] for answer in answers}) == 1
    other = stage.two.ask("/cart", {**CART, "zipcode": "2"}, Authorization=stage.ada, Idempotency_Key=key)
    assert (other.status, other.body["type"]) == (422, "tag:shoal,2026:idempotency-key-reused")
    assert stage.one.submit("/cart", CART, Authorization=stage.bob, Idempotency_Key=key) != answers[0].body["job_id"]


def test_a_job_is_cancelled_at_the_other_gateway(stage: Stage) -> None:
    job_id = stage.one.submit("/jobs", LONG, Authorization=stage.ada)
    assert stage.two.ask(f"/jobs/{job_id}", method="DELETE", Authorization=stage.bob).status == 404
    waiting = stage.one.ask(f"/results/{job_id}", Authorization=stage.ada)
    assert waiting.body["status"] in ("queued", "processing")
    assert stage.two.ask(f"/jobs/{job_id}", method="DELETE", Authorization=stage.ada).body["status"] == "cancelled"
    assert stage.one.finished(job_id, Authorization=stage.ada)["status"] == "cancelled"


def test_nobody_sees_the_jobs_of_another(stage: Stage) -> None:
    job_id = stage.one.submit("/cart", CART, Authorization=stage.ada)
    for path in (f"/results/{job_id}", f"/jobs/{job_id}", f"/jobs/{job_id}/items", f"/jobs/{job_id}/events"):
        assert stage.two.ask(path, Authorization=stage.bob).status == 404
        assert stage.two.ask(path).status == 401
    listed = [job["job_id"] for job in stage.two.ask("/jobs", Authorization=stage.ada).body["jobs"]]
    assert listed[0] == job_id
    assert job_id not in {job["job_id"] for job in stage.two.ask("/jobs", Authorization=stage.bob).body["jobs"]}


def test_results_are_gone_after_their_time_and_then_forgotten(stage: Stage) -> None:
    job_id = stage.two.submit("/cart", CART, Authorization=stage.ada)
    over = datetime.fromisoformat(stage.two.finished(job_id, Authorization=stage.ada)["expires_at"])
    wait_until(lambda: datetime.now(UTC) > over, "the time of the results is over")
    expired = stage.one.ask(f"/results/{job_id}", Authorization=stage.ada)
    problem(expired, 410, "expired-job")  # on time, whoever deletes it
    assert expired.body["job_status"] == "expired"

    def no_longer_expired() -> Reply | None:
        answer = stage.one.ask(f"/results/{job_id}", Authorization=stage.ada)
        return None if answer.status == 410 else answer

    problem(wait_until(no_longer_expired, "the job is forgotten"), 404, "unknown-job")


def test_a_store_that_is_killed_is_named_and_comes_back_by_itself(stage: Stage) -> None:
    if stage.server is None:
        pytest.skip("a file is not killed; test_serve_command.py locks it instead")
    before = stage.one.submit("/jobs", LONG, Authorization=stage.ada)
    stage.server.kill()
    try:
        for path, body in (("/cart", CART), (f"/results/{before}", None), ("/cart", CART)):
            answer = stage.one.ask(path, body, Authorization=stage.ada)
            assert answer.status == 503, answer.raw
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.body["type"] == "tag:shoal,2026:store-unavailable"
        health = stage.one.ask("/health")
        assert (health.status, health.body["parts"]["store"]["status"]) == (503, "unavailable")
        assert stage.one.ask("/health/live").status == 204
    finally:
        stage.server.start()
    wait_until(lambda: stage.one.ask("/health").status == 200, "the store is back")
    seen = stage.one.ask(f"/results/{before}", Authorization=stage.ada)
    assert (seen.status, seen.body["job_id"]) == (200, before), "what was accepted is there"
    after = stage.one.submit("/cart", CART, Authorization=stage.ada)
    assert stage.one.finished(after, Authorization=stage.ada)["status"] == "complete", "workers are back, too"


def test_killed_between_commit_and_answer_and_asked_again_it_is_one_job(
    stage: Stage, shop: str, tmp_path: Path
) -> None:
    if stage.server is None:
        pytest.skip("between a file and its gateway nothing can be lost")
    key = str(uuid.uuid4())
    port = stage.server.port
    with (
        running_proxy(port) as proxy,
        served(tmp_path, shop, engine=stage.url.replace(f":{port}/", f":{proxy.port}/")) as third,
        ThreadPoolExecutor(1) as pool,
    ):
        proxy.lose_answer(to=key.encode(), silently=True)

        def submit() -> Reply | None:
            with suppress(OSError):
                return third.ask("/jobs", LONG, Authorization=stage.ada, Idempotency_Key=key)
            return None

        answer = pool.submit(submit)
        proxy.wait_for_loss()
        third.process.kill()
        assert answer.result() is None, "nobody was told"
    again = stage.one.ask("/jobs", LONG, Authorization=stage.ada, Idempotency_Key=key)
    assert (again.status, again.headers["idempotency-replayed"]) == (202, "true")
    jobs = stage.one.ask("/jobs?limit=1000", Authorization=stage.ada).body["jobs"]
    late = [job["job_id"] for job in jobs if job["scraper"] == "late" and job["status"] != "cancelled"]
    assert late.count(again.body["job_id"]) == 1
    assert stage.two.submit("/jobs", LONG, Authorization=stage.ada, Idempotency_Key=key) in late

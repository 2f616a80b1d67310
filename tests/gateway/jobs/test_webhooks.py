"""Webhooks: whoever asked to be told is told, signed, at least once, whatever dies in between."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shoal import Client, verify_webhook, webhook_secret
from support.command_line import script, shoal
from support.gateway_process import Served, served
from support.receiver import receiving
from support.waiting import wait_until

CART = {"items": ["milk", "eggs"], "zipcode": "10001"}


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
                wait_until(lambda: receiver.silent == 1, "the page is being read")
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

            def dead() -> list[dict[str, Any]]:
                found: list[dict[str, Any]] = json.loads(
                    shoal("dead", "list", deliveries(gateway), "--engine", engine, "--json").stdout
                )
                return found

            letters = wait_until(dead, "the delivery that failed is a dead letter")
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
                    wait_until(
                        lambda: store.execute("SELECT count(*) FROM task").fetchone() == (0,), "all is delivered"
                    )
            assert len(receiver.got) == 2


def kill(gateway: Served) -> None:
    os.kill(gateway.process.pid, signal.SIGKILL)
    gateway.process.wait(120)


def work(engine: str) -> None:
    """Finish what waits, as a worker elsewhere."""
    Path("shoal.toml").write_text('[guard]\nallow_networks = ["127.0.0.0/8"]\n')
    done = shoal("worker", "shop.py", "--engine", engine, "--drain", "--quiet")
    assert done.returncode == 0, done.stderr

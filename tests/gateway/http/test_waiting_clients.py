"""Clients that wait for news of their jobs, and results whose time is over."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from shoal.gateway.http.models import JobDocument
from support.gateway_process import CART, Served, served
from support.waiting import wait_until


def waiting_at(gateway: Served) -> int:
    number: int = gateway.ask("/health").body["parts"]["gateway"]["waiting"]
    return number


class TestWaiting:
    def test_a_job_that_waits_says_where_it_stands(self, idle: Served) -> None:
        first, second = (idle.submit("/late", {"word": "x"}) for _ in range(2))
        one, two = (idle.ask(f"/results/{job_id}") for job_id in (first, second))
        JobDocument.model_validate(one.body)
        assert set(one.body) <= set(JobDocument.model_fields)
        assert (one.body["status"], one.body["progress"]) == ("queued", "0/3 pages completed")
        assert two.body["position"] == one.body["position"] + 1
        assert two.body["estimated_time"] > one.body["estimated_time"] >= 120, "three pages, a minute apart"
        assert one.body["poll_after"] > 1
        assert int(one.headers["retry-after"]) == round(one.body["poll_after"])

    def test_waiting_ends_with_the_time_given(self, idle: Served) -> None:
        job_id = idle.submit("/cart", CART)
        now = idle.ask(f"/results/{job_id}")
        assert idle.ask(f"/results/{job_id}?wait=0.2").body["status"] == "queued"
        assert idle.ask(f"/results/{job_id}?wait=0.2", If_None_Match=now.headers["etag"]).status == 304

    def test_whoever_waits_hears_of_any_change(self, idle: Served) -> None:
        job_id = idle.submit("/cart", CART)
        tag = idle.ask(f"/results/{job_id}").headers["etag"]
        with ThreadPoolExecutor(2) as pool:
            waiting = [
                pool.submit(idle.ask, f"/results/{job_id}?wait=30", If_None_Match=tag),
                pool.submit(idle.ask, f"/results/{job_id}?wait=30"),
            ]
            wait_until(lambda: waiting_at(idle) == 2, "both wait")
            cancelled = idle.ask(f"/jobs/{job_id}", method="DELETE")
            assert (cancelled.status, cancelled.body["status"]) == (200, "cancelled")
            assert [each.result().body["status"] for each in waiting] == ["cancelled", "cancelled"]
        assert idle.ask(f"/jobs/{job_id}", method="DELETE").body["status"] == "cancelled"

    def test_stopping_answers_those_who_wait(self, shop: str, tmp_path: Path) -> None:
        with served(tmp_path, shop) as gateway, ThreadPoolExecutor(1) as pool:
            job_id = gateway.submit("/cart", CART)
            waiting = pool.submit(gateway.ask, f"/results/{job_id}?wait=60")
            wait_until(lambda: waiting_at(gateway) == 1, "the client waits")
            assert gateway.stop() == 0
            assert waiting.result(60).body["status"] == "queued"

"""Jobs over HTTP, from submission to results, on a real gateway with real workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from command_line import shoal
from gateway_process import Reply, Served, open_shop, served
from servers.proxy import running_proxy
from shoal.gateway import http
from shoal.gateway.answer import Problem
from shoal.gateway.models import Job

CART = {"items": ["milk", "eggs", "bread"], "zipcode": "10001"}
NOBODY = "cart-" + "0" * 32


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    with open_shop() as url:
        yield url


@pytest.fixture(scope="module")
def gateway(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A whole service: one gateway process, one worker."""
    with served(tmp_path_factory.mktemp("whole"), shop, "--with-workers", start_timeout="1") as running:
        yield running
        assert running.stop() == 0
        log = (running.folder / "serve.log").read_text()
        assert "could not be answered" not in log
        assert "Traceback" not in log


@pytest.fixture(scope="module")
def idle(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway without workers, where jobs wait."""
    settings = {"cors": '["https://shop.example"]', "max_tasks": "100", "max_body": "10000"}
    with served(tmp_path_factory.mktemp("idle"), shop, **settings) as running:
        yield running


@pytest.fixture(scope="module")
def running(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A gateway whose clients need keys."""
    with served(tmp_path_factory.mktemp("keys"), shop) as gateway:
        yield gateway


def problem(answer: Reply, status: int, kind: str) -> str:
    """What a problem says, checked for its form."""
    assert answer.status == status, answer.raw
    assert answer.headers["content-type"] == "application/problem+json"
    document = answer.body
    assert (document["status"], document["type"]) == (status, f"tag:shoal,2026:{kind}")
    assert document["title"]
    detail: str = document["detail"]
    return detail


class TestTheCart:
    def test_from_submission_to_results(self, gateway: Served) -> None:
        accepted = gateway.ask("/cart", CART)
        assert accepted.status == 202
        job_id = accepted.body["job_id"]
        assert accepted.body["status"] == "queued"
        assert accepted.body["position"] >= 1
        assert accepted.body["estimated_time"] >= 1
        assert accepted.headers["location"] == f"/results/{job_id}"
        assert int(accepted.headers["retry-after"]) >= 1
        assert gateway.ask(f"/results/{job_id}").status == 200, "readable at once"
        done = gateway.finished(job_id)
        assert (done["status"], done["progress"]) == ("complete", "3/3 items completed")
        assert list(done["results"]) == CART["items"]
        assert all(6 <= len(products) <= 20 for products in done["results"].values())
        assert all("milk" in product["title"] for product in done["results"]["milk"])
        assert done["items"] == sum(map(len, done["results"].values()))
        assert gateway.ask(f"/jobs/{job_id}").body == done
        assert set(done) <= set(Job.model_fields)
        Job.model_validate(done)

    def test_zip_codes_are_told_apart(self, gateway: Served) -> None:
        carts = [{"items": ["milk"], "zipcode": str(number)} for number in range(5)]
        job_ids = [gateway.submit("/cart", cart) for cart in carts]
        results = [json.dumps(gateway.finished(job_id)["results"]) for job_id in job_ids]
        assert len(set(results)) == 5

    def test_nothing_has_changed(self, gateway: Served) -> None:
        job_id = gateway.submit("/cart", CART)
        gateway.finished(job_id)
        first = gateway.ask(f"/results/{job_id}")
        again = gateway.ask(f"/results/{job_id}", If_None_Match=first.headers["etag"])
        assert (again.status, again.raw) == (304, b"")
        assert again.headers["etag"] == first.headers["etag"]
        assert gateway.ask(f"/results/{job_id}", If_None_Match='W/"999999"').status == 200

    def test_items_page_by_page_and_line_by_line(self, gateway: Served) -> None:
        job_id = gateway.submit("/cart", CART)
        number = gateway.finished(job_id)["items"]
        found, following = [], 0
        while following is not None:
            page = gateway.ask(f"/jobs/{job_id}/items?limit=2&cursor={following}").body
            found += page["items"]
            following = page["next"]
        assert len(found) == number
        lines = gateway.ask(f"/jobs/{job_id}/items", Accept="application/x-ndjson")
        assert lines.headers["content-type"] == "application/x-ndjson"
        assert [json.loads(line) for line in lines.raw.splitlines()] == found
        assert {record["group"] for record in found} == set(CART["items"])

    def test_events_end_with_the_job(self, gateway: Served) -> None:
        job_id = gateway.submit("/cart", CART)
        answer = gateway.ask(f"/jobs/{job_id}/events")
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = re.findall(r"event: (\w+)\nid: (\d+)\ndata: (.*)\n\n", answer.raw.decode())
        assert [kind for kind, _, _ in events[:-1]] == ["status"] * (len(events) - 1)
        kind, _, data = events[-1]
        assert (kind, json.loads(data)["status"]) == ("end", "complete")
        assert len({version for _, version, _ in events}) == len(events)
        last = gateway.ask(f"/jobs/{job_id}/events", Last_Event_ID="0")
        assert last.raw.count(b"event: ") == 1

    def test_urls_for_any_scraper(self, gateway: Served, shop: str) -> None:
        job_id = gateway.submit("/jobs", {"scraper": "plain", "urls": [f"{shop}page/1", f"{shop}page/2", "ftp://x/"]})
        done = gateway.finished(job_id)
        assert (done["status"], done["progress"]) == ("complete", "2/2 pages completed")
        assert [set(item) for item in done["results"]] == [{"title"}, {"title"}]

    def test_pages_that_cannot_be_read_are_named(self, gateway: Served, shop: str) -> None:
        some = gateway.finished(
            gateway.submit("/jobs", {"scraper": "plain", "urls": [f"{shop}page/1", f"{shop}books/x"]})
        )
        assert some["status"] == "complete"
        assert [(each["url"], "404" in each["reason"]) for each in some["errors"]] == [(f"{shop}books/x", True)]
        none = gateway.finished(gateway.submit("/jobs", {"scraper": "plain", "urls": [f"{shop}books/x"]}))
        assert (none["status"], "404" in none["error"], none["results"]) == ("failed", True, [])

    def test_many_at_once_get_their_own_results(self, gateway: Served) -> None:
        def one(number: int) -> None:
            cart = {"items": [f"thing{number}"], "zipcode": "1"}
            results = gateway.finished(gateway.submit("/cart", cart))["results"]
            assert list(results) == [f"thing{number}"]
            assert all(f"thing{number}," in product["title"] for product in results[f"thing{number}"])

        with ThreadPoolExecutor(20) as pool:
            list(pool.map(one, range(60)))


class TestStartsThatFail:
    def test_a_start_that_raises_fails_the_job(self, gateway: Served) -> None:
        done = gateway.finished(gateway.submit("/sick", {"word": "milk"}))
        assert (done["status"], done["results"]) == ("failed", [])
        assert done["error"] == "The start of 'sick' failed with ValueError: no milk today."

    def test_a_start_that_takes_too_long_fails_the_job_and_holds_up_nobody(self, gateway: Served) -> None:
        with ThreadPoolExecutor(6) as pool:
            slow = [pool.submit(gateway.submit, "/slow", {"word": "x"}) for _ in range(3)]
            quick = gateway.finished(gateway.submit("/cart", CART))
            assert quick["status"] == "complete"
            errors = {gateway.finished(job.result())["error"] for job in slow}
        assert errors == {"The start of 'slow' took more than 1 seconds."}


class TestBadRequests:
    @pytest.mark.parametrize(
        ("path", "body", "status", "kind"),
        [
            ("/cart", b"", 400, "bad-json"),
            ("/cart", b"{", 400, "bad-json"),
            ("/cart", b'{"items": ["\xff"], "zipcode": "1"}', 400, "bad-json"),
            ("/cart", b'{"items": ["\\ud800"], "zipcode": "1"}', 400, "bad-json"),
            ("/cart", b"null", 422, "bad-input"),
            ("/cart", b"[1]", 422, "bad-input"),
            ("/cart", {"items": "milk", "zipcode": "1"}, 422, "bad-input"),
            ("/cart", {"items": [1], "zipcode": "1"}, 422, "bad-input"),
            ("/cart", {"items": []}, 422, "bad-input"),
            ("/cart", {"items": ["x"] * 51, "zipcode": "1"}, 422, "bad-input"),
            ("/cart", {"items": [], "zipcode": "1"}, 422, "nothing-to-fetch"),
            ("/cart", {"items": ["x" * 10_001], "zipcode": "1"}, 413, "body-too-large"),
            ("/jobs", b"[]", 422, "bad-input"),
            ("/jobs", b"nope", 400, "bad-json"),
            ("/jobs", b'{"scraper": "\xff"}', 400, "bad-json"),
            ("/jobs", {}, 422, "bad-input"),
            ("/jobs", {"scraper": "nobody"}, 404, "unknown-scraper"),
            ("/jobs", {"scraper": 1}, 422, "bad-input"),
            ("/jobs", {"scraper": "cart"}, 422, "bad-input"),
            ("/jobs", {"scraper": "cart", "more": 1}, 422, "bad-input"),
            ("/jobs", {"scraper": "cart", "input": CART, "urls": ["http://a.example/"]}, 422, "bad-input"),
            ("/jobs", {"scraper": "plain", "input": {}}, 422, "bad-input"),
            ("/jobs", {"scraper": "plain"}, 422, "nothing-to-fetch"),
            ("/jobs", {"scraper": "plain", "urls": []}, 422, "nothing-to-fetch"),
            ("/jobs", {"scraper": "plain", "urls": ["ftp://a.example/", "", "\x00"]}, 422, "nothing-to-fetch"),
            ("/jobs", {"scraper": "plain", "urls": [1]}, 422, "bad-input"),
            (
                "/jobs",
                {"scraper": "plain", "urls": [f"http://a/{n}" for n in range(101)]},
                422,
                "job-too-large",
            ),
            ("/plain", {}, 404, "not-found"),
            ("/nobody", {}, 404, "not-found"),
        ],
    )
    def test_a_submission_is_refused_with_the_reason(
        self, idle: Served, path: str, body: object, status: int, kind: str
    ) -> None:
        problem(idle.ask(path, body, method="POST"), status, kind)

    def test_a_callback_needs_a_key_and_it_is_said_how_there_will_be_one(self, idle: Served) -> None:
        for path, body in (
            ("/cart?callback=https://a.example/", CART),
            ("/jobs", {"scraper": "plain", "urls": [], "callback": "https://a.example/"}),
        ):
            answer = idle.ask(path, body)
            problem(answer, 403, "not-allowed")
            assert "needs an API key" in answer.body["detail"]
            assert "shoal keys create" in answer.body["detail"]

    def test_the_field_is_named(self, idle: Served) -> None:
        answer = idle.ask("/cart", {"items": ["milk", 5], "zipcode": "1"})
        assert "'items.1'" in problem(answer, 422, "bad-input")
        assert [each["field"] for each in answer.body["errors"]] == ["items.1"]

    @pytest.mark.parametrize("item", ["\x00", "\x1b[2J", "\r\nHost: x", "a b&c=d#e", "☃", "%zz", "x" * 3000])
    def test_strange_items_are_taken_or_refused_with_the_reason(self, idle: Served, item: str) -> None:
        answer = idle.ask("/cart", {"items": [item], "zipcode": "1"})
        if answer.status == 202:
            assert idle.ask(f"/results/{answer.body['job_id']}").body["status"] == "queued"
        else:
            problem(answer, 422, "nothing-to-fetch")

    def test_a_hundred_thousand_items(self, gateway: Served) -> None:
        many = ["x"] * 100_000
        assert "at most 50" in problem(gateway.ask("/cart", {"items": many, "zipcode": "1"}), 422, "bad-input")
        problem(gateway.ask("/jobs", {"scraper": "plain", "urls": many}), 422, "job-too-large")

    @pytest.mark.parametrize("size", [2_000_000, 10_000_000])
    def test_whoever_sends_a_large_body_to_its_end_is_told_that_it_is_too_large(self, idle: Served, size: int) -> None:
        """Most clients look at the answer only then; if the line had been cut, they would never see it."""
        for path in ("/cart", "/jobs"):
            problem(idle.ask(path, b"x" * size), 413, "body-too-large")

    def test_a_body_that_does_not_come(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(http, "BODY_WITHIN", 0.01)
        parts = iter([{"type": "http.request", "body": b"{", "more_body": True}])

        async def receive() -> dict[str, object]:
            for part in parts:
                return part
            await asyncio.sleep(3600)
            raise AssertionError

        with pytest.raises(Problem) as told:
            asyncio.run(http.read_body({"headers": []}, receive, 100))
        assert (told.value.status, told.value.kind) == (408, "body-too-slow")

    @pytest.mark.parametrize(
        ("sent", "status", "kind"),
        [
            (b"GET /health HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 1_000_000, 431, "headers-too-large"),
            (b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X-Many: a\r\n" * 100_000, 431, "headers-too-large"),
            (b"\x16\x03\x01\x02 hello\r\n\r\n", 400, "bad-http"),
            (b"POST /cart HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400, "bad-http"),
        ],
    )
    def test_what_is_hardly_http_is_a_problem_too(self, idle: Served, sent: bytes, status: int, kind: str) -> None:
        host, port = idle.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 10) as client:
            with contextlib.suppress(ConnectionError):  # it hangs up in the middle
                client.sendall(sent)
            with contextlib.suppress(ConnectionError):
                answer = client.recv(1000)
                assert answer.startswith(b"HTTP/1.1 %d " % status), answer
                assert f'"type":"tag:shoal,2026:{kind}"'.encode() in answer
        assert idle.ask("/health/live").status == 204

    def test_a_slash_at_the_end_means_nothing(self, idle: Served) -> None:
        job_id = idle.submit("/cart/", CART)
        order = {"scraper": "plain", "urls": ["http://127.0.0.1:9/"]}
        assert idle.ask("/jobs/", order).status == 202
        for path in (f"/results/{job_id}/", f"/jobs/{job_id}/"):
            assert idle.ask(path).body["job_id"] == job_id
        assert idle.ask(f"/jobs/{job_id}/items/").body["items"] == []
        assert idle.ask(f"/jobs/{job_id}/", method="DELETE").body["status"] == "cancelled"
        assert idle.ask("/health/live/").status == 204

    def test_head_is_get_without_the_body(self, idle: Served) -> None:
        job_id = idle.submit("/cart", CART)
        for path in (f"/results/{job_id}", f"/jobs/{job_id}/items", "/health", "/metrics", "/scrapers", "/docs"):
            got, told = idle.ask(path), idle.ask(path, method="HEAD")
            assert (told.status, told.raw) == (got.status, b""), path
            assert told.headers["content-type"] == got.headers["content-type"]
        assert idle.ask(f"/results/{NOBODY}", method="HEAD").status == 404
        assert idle.ask(f"/jobs/{job_id}/events", method="HEAD").status == 405
        assert idle.ask("/cart", method="HEAD").status == 405

    def test_one_of_several_versions_that_are_known(self, idle: Served) -> None:
        job_id = idle.submit("/cart", CART)
        idle.ask(f"/jobs/{job_id}", method="DELETE")
        tag = idle.ask(f"/results/{job_id}").headers["etag"]
        assert tag != 'W/"0"'
        for known, status in ((f'"x", {tag}', 304), (f'W/"0",{tag}', 304), ('W/"0", "x"', 200), ("", 200), (",", 200)):
            assert idle.ask(f"/results/{job_id}", If_None_Match=known).status == status, known

    def test_names_that_nobody_would_read_are_cut(self, idle: Served) -> None:
        answer = idle.ask("/jobs", {"scraper": "x" * 5_000, "urls": []})
        assert len(problem(answer, 404, "unknown-scraper")) < 500

    @pytest.mark.parametrize("path", ["/cart", "/jobs"])
    def test_a_large_body_is_refused_without_being_read(self, idle: Served, path: str) -> None:
        host, port = idle.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 10) as client:
            client.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 10000000\r\n\r\n{{".encode())
            assert client.recv(1000).startswith(b"HTTP/1.1 413 ")
        with socket.create_connection((host, int(port)), 10) as client:
            client.sendall(
                f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
                + b"fff\r\n%b\r\n" % (b"x" * 4095) * 4
            )
            assert client.recv(1000).startswith(b"HTTP/1.1 413 ")

    @pytest.mark.parametrize(
        ("path", "method", "status", "kind"),
        [
            ("/", "GET", 404, "not-found"),
            ("/results/", "GET", 404, "not-found"),
            ("/cart", "GET", 405, "method-not-allowed"),
            ("/results/x", "POST", 405, "method-not-allowed"),
            ("/jobs?limit=0", "GET", 422, "bad-request"),
            (f"/results/{NOBODY}", "GET", 404, "unknown-job"),
            (f"/jobs/{NOBODY}", "GET", 404, "unknown-job"),
            (f"/jobs/{NOBODY}/items", "GET", 404, "unknown-job"),
            (f"/jobs/{NOBODY}/events", "GET", 404, "unknown-job"),
            (f"/jobs/{NOBODY}", "DELETE", 404, "unknown-job"),
            ("/results/x%00y", "GET", 404, "unknown-job"),
            (f"/results/{NOBODY}?wait=x", "GET", 422, "bad-query"),
            (f"/results/{NOBODY}?wait=-1", "GET", 422, "bad-query"),
            (f"/results/{NOBODY}?wait=nan", "GET", 422, "bad-query"),
            ("/jobs", "GET", 403, "not-allowed"),
        ],
    )
    def test_everything_else_is_a_problem_too(
        self, idle: Served, path: str, method: str, status: int, kind: str
    ) -> None:
        problem(idle.ask(path, method=method), status, kind)

    def test_an_unknown_job_says_so_in_its_body(self, idle: Served) -> None:
        assert idle.ask(f"/results/{NOBODY}").body["job_status"] == "not_found"


class TestWaiting:
    def test_a_job_that_waits_says_where_it_stands(self, idle: Served) -> None:
        first, second = (idle.submit("/late", {"word": "x"}) for _ in range(2))
        one, two = (idle.ask(f"/results/{job_id}") for job_id in (first, second))
        Job.model_validate(one.body)
        assert set(one.body) <= set(Job.model_fields)
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
            while idle.ask("/health").body["parts"]["gateway"]["waiting"] < 2:
                time.sleep(0.01)
            cancelled = idle.ask(f"/jobs/{job_id}", method="DELETE")
            assert (cancelled.status, cancelled.body["status"]) == (200, "cancelled")
            assert [each.result().body["status"] for each in waiting] == ["cancelled", "cancelled"]
        assert idle.ask(f"/jobs/{job_id}", method="DELETE").body["status"] == "cancelled"

    def test_stopping_answers_those_who_wait(self, shop: str, tmp_path: Path) -> None:
        with served(tmp_path, shop) as gateway, ThreadPoolExecutor(1) as pool:
            job_id = gateway.submit("/cart", CART)
            waiting = pool.submit(gateway.ask, f"/results/{job_id}?wait=60")
            while gateway.ask("/health").body["parts"]["gateway"]["waiting"] < 1:
                time.sleep(0.01)
            assert gateway.stop() == 0
            assert waiting.result(5).body["status"] == "queued"

    def test_results_expire(self, shop: str, tmp_path: Path) -> None:
        settings = {"results_ttl": "500ms", "remember": "500ms"}
        with served(tmp_path, shop, "--with-workers", **settings) as gateway:
            job_id = gateway.submit("/cart", CART)
            assert len(gateway.finished(job_id)["results"]) == 3
            while (answer := gateway.ask(f"/results/{job_id}")).status == 200:
                time.sleep(0.1)
            problem(answer, 410, "expired-job")
            assert answer.body["job_status"] == "expired"
            while (answer := gateway.ask(f"/results/{job_id}")).status == 410:
                time.sleep(0.1)
            problem(answer, 404, "unknown-job")


class TestSubmittingTwice:
    def test_the_same_key_is_the_same_job(self, idle: Served) -> None:
        key = str(uuid.uuid4())
        first = idle.ask("/cart", CART, Idempotency_Key=key)
        again = idle.ask("/cart", CART, Idempotency_Key=key)
        assert (again.status, again.body["job_id"]) == (202, first.body["job_id"])
        assert ("idempotency-replayed" in first.headers, again.headers["idempotency-replayed"]) == (False, "true")
        other = idle.ask("/cart", {**CART, "zipcode": "2"}, Idempotency_Key=key)
        problem(other, 422, "idempotency-key-reused")

    def test_many_at_once_with_the_same_key_are_one_job(self, idle: Served) -> None:
        key = str(uuid.uuid4())
        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(lambda _: idle.submit("/cart", CART, Idempotency_Key=key), range(20)))
        assert len(set(answers)) == 1

    def test_an_answer_that_was_lost_on_the_way(self, idle: Served) -> None:
        key = str(uuid.uuid4())
        with running_proxy(int(idle.url.rsplit(":", 1)[1])) as proxy:
            through = Served(f"http://127.0.0.1:{proxy.port}", idle.process, idle.folder)
            proxy.lose_answer(to=key.encode())
            with pytest.raises(OSError, match=r"reset|closed|Remote"):
                through.ask("/cart", CART, Idempotency_Key=key)
            answer = through.ask("/cart", CART, Idempotency_Key=key)
        assert answer.headers["idempotency-replayed"] == "true"

    @pytest.mark.parametrize("key", ["", "short", "x" * 256, "with\ttab and more than enough"])
    def test_a_key_that_cannot_be_told_apart_is_refused(self, idle: Served, key: str) -> None:
        problem(idle.ask("/cart", CART, Idempotency_Key=key), 400, "bad-idempotency-key")


class TestAbout:
    def test_scrapers_are_listed_with_their_inputs(self, idle: Served) -> None:
        found = {each["name"]: each for each in idle.ask("/scrapers").body}
        assert found["cart"]["path"] == "/cart"
        assert set(found["cart"]["input"]["properties"]) == {"items", "zipcode"}
        assert (found["plain"]["path"], found["plain"]["input"]) == (None, None)
        assert found["jobs"]["path"] is None, "the name is taken"

    def test_openapi_has_the_inputs(self, idle: Served) -> None:
        document = idle.ask("/openapi.json").body
        body = document["paths"]["/cart"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert body == {"$ref": "#/components/schemas/Cart"}
        assert "application/problem+json" in document["paths"]["/cart"]["post"]["responses"]["422"]["content"]

    def test_health_names_each_part(self, gateway: Served, idle: Served) -> None:
        gateway.finished(gateway.submit("/cart", CART))
        end = time.monotonic() + 20
        while (health := gateway.ask("/health").body)["status"] != "ok":
            assert time.monotonic() < end, health
            time.sleep(0.05)
        assert health["parts"]["workers"]["seen"] == 1
        assert idle.ask("/health").body["status"] == "no workers"
        assert idle.ask("/health/live").status == 204

    def test_metrics(self, idle: Served) -> None:
        idle.submit("/cart", CART)
        page = idle.ask("/metrics").raw.decode()
        assert re.search(r'shoal_gateway_requests_total\{route="/cart",status="202"\} [1-9]', page)
        assert "shoal_store_up 1.0" in page

    def test_cors(self, idle: Served) -> None:
        asked = {"Origin": "https://shop.example", "Access_Control_Request_Method": "POST"}
        allowed = idle.ask("/cart", method="OPTIONS", **asked)
        assert allowed.headers["access-control-allow-origin"] == "https://shop.example"
        answer = idle.ask("/cart", CART, Origin="https://shop.example")
        assert "Location" in answer.headers["access-control-expose-headers"]
        refused = idle.ask("/cart", method="OPTIONS", **{**asked, "Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in refused.headers


class TestSeveralProcesses:
    def test_one_that_is_killed_is_replaced_and_nothing_is_lost(self, shop: str, tmp_path: Path) -> None:
        with served(tmp_path, shop, "--processes", "2", "--with-workers") as gateway:
            parent = psutil.Process(gateway.process.pid)

            def gateways() -> list[psutil.Process]:
                return [child for child in parent.children() if "serve" in child.cmdline()]

            def patiently(work: object, *words: object) -> object:
                end = time.monotonic() + 30
                while True:
                    try:
                        return work(*words)  # type: ignore[operator]
                    except OSError:
                        assert time.monotonic() < end
                        time.sleep(0.05)

            job_ids = [gateway.submit("/cart", CART) for _ in range(10)]
            statuses = {gateway.ask(f"/results/{job_id}").status for job_id in job_ids for _ in range(3)}
            assert statuses == {200}, "every process knows every job"
            victim = gateways()[0]
            victim.kill()
            job_ids.append(str(patiently(gateway.submit, "/cart", CART)))
            for job_id in job_ids:
                assert patiently(gateway.finished, job_id)["status"] == "complete"  # type: ignore[index]
            end = time.monotonic() + 30
            while len(gateways()) < 2 or victim.pid in {each.pid for each in gateways()}:
                assert time.monotonic() < end
                time.sleep(0.05)
            assert b"shoal_gateway_requests_total" in patiently(lambda: gateway.ask("/metrics").raw)  # type: ignore[operator]
            children = parent.children(recursive=True)
            assert gateway.stop() == 0
        _, alive = psutil.wait_procs(children, 10)
        assert not alive


class TestAStoreThatIsAway:
    def test_submissions_hear_of_it_and_it_comes_back_by_itself(self, shop: str, tmp_path: Path) -> None:
        with served(tmp_path, shop) as gateway:
            job_id = gateway.submit("/cart", CART)
            with contextlib.closing(sqlite3.connect(tmp_path / "shoal.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                for _ in range(3):
                    answer = gateway.ask("/cart", CART)
                    assert answer.status == 503, answer.raw
                    assert answer.headers["content-type"] == "application/problem+json"
                    assert int(answer.headers["retry-after"]) >= 1
                assert gateway.ask(f"/results/{job_id}").status == 200, "reading goes on"
                other.execute("ROLLBACK")
            end = time.monotonic() + 30
            while gateway.ask("/cart", CART).status != 202:
                assert time.monotonic() < end
                time.sleep(0.05)


class TestKeys:
    @pytest.fixture
    def guarded(self, running: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
        """A gateway, and its store as the one that commands use."""
        monkeypatch.chdir(running.folder)
        monkeypatch.setenv("SHOAL_ENGINE", f"sqlite:///{running.folder}/shoal.db")
        return running

    def make(self, name: str, *options: str) -> str:
        made = shoal("keys", "create", name, *options)
        assert made.returncode == 0, made.stderr
        return f"Bearer {made.stdout.strip()}"

    def test_nobody_sees_the_jobs_of_another(self, guarded: Served) -> None:
        ada, bob, boss = (self.make(name, *more) for name, *more in (["ada"], ["bob"], ["boss", "--scope", "admin"]))
        job_id = guarded.submit("/cart", CART, Authorization=ada)
        assert guarded.ask(f"/results/{job_id}", Authorization=ada).status == 200
        assert guarded.ask(f"/results/{job_id}", X_API_Key=ada.split()[1]).status == 200
        assert guarded.ask(f"/results/{job_id}", Authorization=boss).status == 200
        for path in (f"/results/{job_id}", f"/jobs/{job_id}", f"/jobs/{job_id}/items", f"/jobs/{job_id}/events"):
            problem(guarded.ask(path, Authorization=bob), 404, "unknown-job")
            problem(guarded.ask(path), 401, "no-api-key")
        problem(guarded.ask(f"/jobs/{job_id}", method="DELETE", Authorization=bob), 404, "unknown-job")
        assert [job["job_id"] for job in guarded.ask("/jobs", Authorization=ada).body["jobs"]] == [job_id]
        assert guarded.ask("/jobs", Authorization=bob).body == {"jobs": [], "next": None}
        other = guarded.submit("/cart", CART, Authorization=bob)
        page = guarded.ask("/jobs?limit=1", Authorization=boss).body
        rest = guarded.ask(f"/jobs?limit=1&before={page['next']}", Authorization=boss).body
        assert [page["jobs"][0]["job_id"], rest["jobs"][0]["job_id"]] == [other, job_id]

    def test_idempotency_keys_are_the_owners_own(self, guarded: Served) -> None:
        ada, bob = self.make("ada"), self.make("bob")
        jobs = {guarded.submit("/cart", CART, Authorization=who, Idempotency_Key="1") for who in (ada, bob, ada)}
        assert len(jobs) == 2

    def test_a_key_that_is_not_good(self, guarded: Served) -> None:
        self.make("ada")
        bob = self.make("robert")
        for wrong in ("Bearer nonsense", "Bearer ", "Basic YTpi", "nonsense"):
            answer = guarded.ask("/cart", CART, Authorization=wrong)
            problem(answer, 401, "no-api-key")
            assert answer.headers["www-authenticate"] == "Bearer"
        assert guarded.ask("/cart", CART, Authorization=bob).status == 202
        assert shoal("keys", "revoke", "robert").returncode == 0
        end = time.monotonic() + 30
        while guarded.ask("/cart", CART, Authorization=bob).status != 401:
            assert time.monotonic() < end
            time.sleep(0.05)

    def test_only_hashes_are_stored(self, guarded: Served) -> None:
        secret = self.make("ada").split()[1]
        listed = shoal("keys", "list", "--json")
        assert "ada" in {each["name"] for each in json.loads(listed.stdout)}
        assert secret not in listed.stdout
        for file in guarded.folder.glob("shoal.db*"):
            assert secret.encode() not in file.read_bytes()


class TestTheCommand:
    def test_a_store_that_cannot_be_opened_is_all_that_is_said(self, idle: Served) -> None:
        for engine in ("mysql://x", "sqlite:////nowhere/shoal.db", "redis://127.0.0.1:9/0"):
            answer = shoal("serve", f"{idle.folder}/shop.py", "--port", "0", "--engine", engine)
            assert (answer.returncode, answer.stdout) == (2, "")
            assert answer.stderr.startswith("shoal: ")
            assert answer.stderr.count("\n") == 1

    def test_a_port_that_is_taken(self, idle: Served, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(idle.folder)
        port = idle.url.rsplit(":", 1)[1]
        answer = shoal("serve", "shop.py", "--port", port)
        assert answer.returncode == 2
        assert f"port {port}: Address already in use" in answer.stderr

    def test_keys(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert "everybody may use the gateway" in shoal("keys", "list").stderr
        missing = shoal("keys", "revoke", "nobody")
        assert (missing.returncode, "no API key 'nobody'" in missing.stderr) == (2, True)
        for _ in range(2):
            assert shoal("keys", "create", "twin").returncode == 0
        assert "2 API keys are called 'twin'" in shoal("keys", "revoke", "twin").stderr
        assert "twin" in shoal("keys", "list").stdout

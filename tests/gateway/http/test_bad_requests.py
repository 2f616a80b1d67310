"""What cannot be answered is refused with the reason, whatever is wrong with it."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from shoal.gateway.http import asgi
from shoal.gateway.http.answer import Problem
from shoal.gateway.perimeter.caller import CALLER, Caller
from support.gateway_process import CART, NOBODY, Served, problem


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

    def test_a_body_that_does_not_come(self) -> None:
        parts = iter([{"type": "http.request", "body": b"{", "more_body": True}])

        async def receive() -> dict[str, object]:
            for part in parts:
                return part
            return await asyncio.Future[dict[str, object]]()

        scope = {"headers": [], CALLER: Caller()}
        with pytest.raises(Problem) as told:
            asyncio.run(asgi.read_body(scope, receive, 100, within=0.01))
        assert (told.value.status, told.value.kind) == (408, "body-too-slow")

    @pytest.mark.parametrize(
        ("sent", "status", "kind"),
        [
            (b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 1_000_000, 431, "headers-too-large"),
            (b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"X-Many: a\r\n" * 100_000, 431, "headers-too-large"),
            (b"\x16\x03\x01\x02 hello\r\n\r\n", 400, "bad-http"),
            (b"POST /cart HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400, "bad-http"),
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
            client.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n{{".encode())
            assert client.recv(1000).startswith(b"HTTP/1.1 413 ")
        with socket.create_connection((host, int(port)), 10) as client:
            client.sendall(
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
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
            ("/results/x%00y", "GET", 404, "not-found"),
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

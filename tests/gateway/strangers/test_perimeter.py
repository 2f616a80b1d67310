"""What stands around every route: keys, exact paths, bodies, names and origins."""

from __future__ import annotations

import contextlib

import pytest

from support.gateway_process import CART, NOBODY, Served, problem
from support.guarded_gateway import Guarded
from support.raw_client import ask_raw, memory_of, raw_client, said, status_of

HEAD = b"Host: localhost\r\nConnection: close\r\n"


class TestKeysStandAroundEverything:
    @pytest.mark.parametrize(
        "path",
        ["/jobs", "/cart", "/jobs%0A", "/cart%0A", "/metrics", "/docs", "/openapi.json", "/scrapers", "/nobody", "/%2e"]
        + [f"/jobs/{NOBODY}{rest}" for rest in ("", "/items", "/events", "%0A", "/items%0A", "//items")],
    )
    @pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT", "OPTIONS"])
    def test_no_path_and_no_method_goes_by_the_key(self, guarded: Guarded, method: str, path: str) -> None:
        problem(guarded.gateway.ask(path, method=method), 401, "no-api-key")

    def test_health_is_for_all(self, guarded: Guarded) -> None:
        assert guarded.gateway.ask("/health/live").status == 204
        assert guarded.gateway.ask("/health").status == 200
        assert guarded.gateway.ask("/static/shoal.js").status == 200

    @pytest.mark.parametrize("path", ["/jobs%0A", "/cart%0A", "/jobs", "/nobody"])
    def test_a_body_without_a_key_is_not_taken(self, guarded: Guarded, path: str) -> None:
        """It was: 500 MB of it, and 1.1 GB of memory."""
        before = memory_of(guarded.gateway)
        with raw_client(guarded.gateway) as client:
            client.sendall(b"POST %b HTTP/1.1\r\n%bContent-Length: 500000000\r\n\r\n" % (path.encode(), HEAD))
            with contextlib.suppress(ConnectionError):
                for _ in range(640):  # 40 MB
                    client.sendall(b"[" * 65536)
            answer = said(client)
        assert status_of(answer) in (0, 401)  # 0: it hung up while we talked on, and the answer was lost on the way
        assert memory_of(guarded.gateway) < before + 20

    def test_what_a_key_is_not_for_is_not_shown_to_it(self, guarded: Guarded) -> None:
        gateway, narrow = guarded.gateway, guarded.make_key("narrow", "--scraper", "cart")
        assert [each["name"] for each in gateway.ask("/scrapers", Authorization=narrow).body] == ["cart"]
        document = gateway.ask("/openapi.json", Authorization=narrow).raw
        assert b'"/cart"' in document
        assert b"sick" not in document
        assert b"Word" not in document, "nor the inputs of others"
        page = gateway.ask("/docs", Authorization=narrow).raw
        assert b"/cart" in page
        assert b"sick" not in page
        detail = problem(gateway.ask("/jobs", {"scraper": "nobody"}, Authorization=narrow), 404, "unknown-scraper")
        assert detail.endswith("there are cart.")
        assert b"sick" in gateway.ask("/docs", Authorization=guarded.key).raw

    def test_the_figures_of_all_need_a_right_of_their_own(self, guarded: Guarded) -> None:
        problem(guarded.gateway.ask("/metrics", Authorization=guarded.key), 403, "not-allowed")
        watcher = guarded.make_key("prometheus", "--scope", "metrics")
        assert b"shoal_store_up" in guarded.gateway.ask("/metrics", Authorization=watcher).raw
        problem(guarded.gateway.ask("/cart", CART, Authorization=watcher), 403, "not-allowed")


class TestExactly:
    @pytest.mark.parametrize(
        "path",
        ["/jobs%0A", "/jobs%0a", "/jobs%20", "/jobs;x", "//jobs", "/jobs//", "/JOBS", "/Cart", "/cart%0A", "/cart%2F"],
    )
    def test_another_spelling_of_a_path_is_another_path(self, idle: Served, path: str) -> None:
        self.check(idle, path)

    @pytest.mark.parametrize(
        "path", ["/c%61rt", "/jobs/../cart", "/./jobs", "/cart/x", "/jobs%00", "/cart%EF%BB%BF", "/jobs,", "/cart%3F"]
    )
    def test_however_it_is_spelled(self, idle: Served, path: str) -> None:
        self.check(idle, path)

    def check(self, idle: Served, path: str) -> None:
        body = b'{"scraper": "plain", "urls": ["http://127.0.0.1:9/"]}'
        answer = ask_raw(
            idle, b"POST %b HTTP/1.1\r\n%bContent-Length: %d\r\n\r\n%b" % (path.encode(), HEAD, len(body), body)
        )
        assert status_of(answer) in (404, 405), answer

    @pytest.mark.parametrize(
        "rest", ["%0A", "%2Fitems", "/items%0A", "/items/x", "//items", "/Items", "%00", "/events/."]
    )
    def test_another_spelling_of_a_job_is_another_job(self, idle: Served, rest: str) -> None:
        job_id = idle.submit("/cart", CART)
        assert (
            status_of(ask_raw(idle, b"GET /jobs/%b%b HTTP/1.1\r\n%b\r\n" % (job_id.encode(), rest.encode(), HEAD)))
            == 404
        )

    @pytest.mark.parametrize(
        "path", ["/jobs%0A", "/jobs/x%0A", "/jobs%2Fx", "/health%0A", "/.%2e/shoal.db", "/index.html%00"]
    )
    def test_nor_is_it_a_file(self, open_gateway: Served, path: str) -> None:
        assert status_of(ask_raw(open_gateway, b"GET %b HTTP/1.1\r\n%b\r\n" % (path.encode(), HEAD))) == 404
        assert open_gateway.ask("/").raw == b"<h1>search</h1>"


class TestBodies:
    def test_nobody_waits_for_a_body_that_nobody_wants(self, idle: Served) -> None:
        for request in (b"POST /nobody", b"PUT /jobs", b"DELETE /nobody", b"POST /health"):
            with raw_client(idle) as client:
                client.sendall(b"%b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{" % request)
                answer = client.recv(10_000)
                assert status_of(answer) in (404, 405), answer
                assert b"connection: close" in answer
                assert said(client) is not None, "and hangs up"

    @pytest.mark.parametrize(
        ("path", "body"),
        [
            ("/cart", b"[" * 500_000),
            ("/cart", b'{"items":' + b"[" * 100_000),
            ("/jobs", b'{"scraper":"plain","input":' + b'{"a":' * 100_000),
            ("/jobs", b'{"scraper":"cart","input":' + b"[" * 900 + b"]" * 900 + b"}"),
        ],
    )
    def test_deep_json_is_a_mistake_of_the_client(self, gateway: Served, path: str, body: bytes) -> None:
        problem(gateway.ask(path, body), 400, "bad-json")

    def test_a_request_has_one_host(self, idle: Served) -> None:
        for hosts in (b"", b"Host: localhost\r\nHost: localhost\r\n", b"Host: localhost\r\nHost: evil.example\r\n"):
            answer = ask_raw(idle, b"GET /health/live HTTP/1.1\r\n%b\r\n" % hosts)
            assert status_of(answer) == 400, answer
            assert b"x-content-type-options: nosniff" in answer

    def test_trailers_are_not_headers(self, guarded: Guarded) -> None:
        key = guarded.key.encode()
        chunks = b"2\r\n{}\r\n0\r\n"
        for late in (b"Authorization: %b\r\n" % key, b"X-Api-Key: %b\r\n" % key.split()[1]):
            answer = ask_raw(
                guarded.gateway,
                b"POST /cart HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\nTrailer: Authorization\r\n\r\n%b%b\r\n"
                % (HEAD, chunks, late),
            )
            assert status_of(answer) == 401, answer

    @pytest.mark.parametrize("rest", [b"0\r\nX-Long: " + b"a" * 20_000_000, b"1;" + b"a" * 20_000_000])
    def test_nor_are_they_taken_without_end(self, idle: Served, rest: bytes) -> None:
        before = memory_of(idle)
        answer = ask_raw(idle, b"POST /cart HTTP/1.1\r\n%bTransfer-Encoding: chunked\r\n\r\n%b" % (HEAD, rest))
        assert status_of(answer) in (0, 400)
        assert memory_of(idle) < before + 20


class TestVisitors:
    @pytest.mark.parametrize(
        "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil:8000", ""]
    )
    def test_a_name_that_is_not_ours_is_refused(self, open_gateway: Served, host: str) -> None:
        answer = ask_raw(
            open_gateway, b"GET /scrapers HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % host.encode()
        )
        assert status_of(answer) == 421, answer
        assert b"serve.hosts" in answer

    @pytest.mark.parametrize(
        "host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "10.1.2.3", "gate.example"]
    )
    def test_one_that_is_ours_is_not(self, open_gateway: Served, host: str) -> None:
        answer = ask_raw(
            open_gateway, b"GET /scrapers HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % host.encode()
        )
        assert status_of(answer) == 200, answer

    @pytest.mark.parametrize(
        "origin", ["https://evil.example", "null", "http://localhost:1", "https://shop.example.evil.example"]
    )
    def test_a_page_of_somebody_else_submits_nothing(self, open_gateway: Served, origin: str) -> None:
        for method in ("POST", "GET", "DELETE"):
            problem(open_gateway.ask("/cart", CART, method=method, Origin=origin), 403, "foreign-origin")

    def test_pages_of_ours_and_of_friends_do(self, open_gateway: Served) -> None:
        for origin in (open_gateway.url, "https://shop.example"):
            assert open_gateway.ask("/cart", CART, Origin=origin).status == 202

    def test_with_keys_pages_and_names_do_not_matter(self, guarded: Guarded) -> None:
        more = {"Authorization": guarded.key, "Origin": "https://any.example", "Host": "any.example"}
        assert guarded.gateway.ask("/cart", CART, **more).status == 202


def test_every_answer_is_safe_in_a_browser(open_gateway: Served) -> None:
    asked = ["GET /docs", "GET /", "GET /nobody", "PUT /cart", "GET /static/shoal.js", "POST /cart", "GET /health/live"]
    for method, path in (each.split() for each in (*asked, f"GET /results/{NOBODY}")):
        answer = open_gateway.ask(path, method=method)
        assert answer.headers["x-content-type-options"] == "nosniff", path
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"], path
    assert b"frame-ancestors 'none'" in ask_raw(open_gateway, b"nonsense\r\n\r\n")

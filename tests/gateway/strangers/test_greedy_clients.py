"""Clients that ask for more than they take, and the others meanwhile."""

from __future__ import annotations

import contextlib
from contextlib import ExitStack

from support.gateway_process import CART, Served
from support.guarded_gateway import Guarded
from support.raw_client import memory_of, raw_client, said, status_of
from support.waiting import wait_until


def waiting_at(gateway: Served) -> int:
    found: int = gateway.ask("/health").body["parts"]["gateway"]["waiting"]
    return found


class TestPipelining:
    def test_what_is_sent_ahead_is_bounded(self, idle: Served) -> None:
        """It was not: 30 MB of `GET /x` in one connection, 2.3 GB of memory, and no key needed."""
        before = memory_of(idle)
        with raw_client(idle) as client:
            client.setblocking(False)
            request = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
            flood = memoryview(request * (4_000_000 // len(request)))
            sent = 0
            with contextlib.suppress(ConnectionError):
                while sent < len(flood):
                    with contextlib.suppress(BlockingIOError):
                        sent += client.send(flood[sent:])
                        assert idle.ask("/health/live").status == 204
                    with contextlib.suppress(BlockingIOError):
                        if not client.recv(100_000):
                            break
        assert idle.ask("/health/live").status == 204
        assert memory_of(idle) < before + 20

    def test_a_few_that_are_sent_ahead_are_answered_in_their_order(self, idle: Served) -> None:
        job_id = idle.submit("/cart", CART).encode()
        with raw_client(idle) as client:
            paths = [b"/health/live", b"/results/%b" % job_id, b"/x", b"/results/%b?wait=0.1" % job_id, b"/health/live"]
            last = b"Connection: close\r\n"
            client.sendall(
                b"".join(
                    b"GET %b HTTP/1.1\r\nHost: localhost\r\n%b\r\n" % (path, last if number == 4 else b"")
                    for number, path in enumerate(paths)
                )
            )
            answers = said(client).split(b"HTTP/1.1 ")[1:]
        assert [int(answer[:3]) for answer in answers] == [204, 200, 404, 200, 204]

    def test_of_too_many_the_first_are_answered(self, idle: Served) -> None:
        with raw_client(idle) as client:
            client.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000)
            answers = said(client)
        count = answers.count(b"HTTP/1.1 204 ")
        assert 1 <= count < 1000
        assert answers.count(b"HTTP/1.1 ") == count
        assert b"connection: close" in answers[answers.rindex(b"HTTP/1.1") :]

    def test_large_bodies_that_are_sent_ahead_are_not_held(self, idle: Served) -> None:
        job_id = idle.submit("/cart", CART).encode()
        before = memory_of(idle)
        with ExitStack() as stack:
            for _ in range(20):
                client = stack.enter_context(raw_client(idle))
                client.sendall(b"GET /results/%b?wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n" % job_id)
                head = b"POST /cart HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\n"
                with contextlib.suppress(ConnectionError):
                    for _ in range(200):
                        client.sendall(head + b"x" * 9000)
            assert memory_of(idle) < before + 20


class TestWaiters:
    def test_who_has_left_does_not_wait(self, idle: Served) -> None:
        """It did, for up to a minute each: whoever came and left often enough kept all others from waiting."""
        job_id = idle.submit("/cart", CART).encode()
        for more in (b"", b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            with ExitStack() as stack:
                for _ in range(50):
                    client = stack.enter_context(raw_client(idle))
                    client.sendall(b"GET /results/%b?wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n" % job_id + more)
                    client = stack.enter_context(raw_client(idle))
                    client.sendall(b"GET /jobs/%b/events HTTP/1.1\r\nHost: localhost\r\n\r\n" % job_id + more)
                wait_until(lambda: waiting_at(idle) == 100, "all of them wait")
            wait_until(lambda: waiting_at(idle) == 0, "nobody waits", within=20)

    def test_who_comes_and_leaves_at_once_never_waits(self, idle: Served) -> None:
        job_id = idle.submit("/cart", CART).encode()
        for _ in range(300):
            with raw_client(idle) as client:
                client.sendall(b"GET /results/%b?wait=60 HTTP/1.1\r\nHost: localhost\r\n\r\n" % job_id)
        wait_until(lambda: waiting_at(idle) == 0, "nobody waits", within=20)

    def test_streams_end_when_their_key_is_revoked(self, guarded: Guarded) -> None:
        gateway, key = guarded.gateway, guarded.make_key("brief").encode()
        job_id = gateway.submit("/cart", CART, Authorization=key.decode()).encode()
        asked = b"Host: localhost\r\nAuthorization: %b\r\nConnection: close\r\n\r\n" % key
        with raw_client(gateway) as events, raw_client(gateway) as poll:
            events.sendall(b"GET /jobs/%b/events HTTP/1.1\r\n%b" % (job_id, asked))
            poll.sendall(b"GET /results/%b?wait=60 HTTP/1.1\r\n%b" % (job_id, asked))
            wait_until(lambda: waiting_at(gateway) == 2, "both wait")
            guarded.revoke("brief")
            told = said(events)
            assert told.count(b"event: status") == 1
            assert b"event: problem\n" in told
            assert b"revoked" in told
            assert status_of(said(poll)) == 401

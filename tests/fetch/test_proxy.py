"""The proxy that breaks connections for other tests: each way to break one is really what it says."""

from __future__ import annotations

import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

from servers.proxy import Proxy, running_proxy

QUIET = 0.2
"""Seconds of silence that are taken for "nothing will come"."""


class Echo(socketserver.BaseRequestHandler):
    """Says what it hears, in capitals, and remembers it."""

    heard: list[bytes]

    def handle(self) -> None:
        try:
            while data := self.request.recv(100):
                self.heard.append(data)
                self.request.sendall(data.upper())
        except ConnectionError:
            pass


@pytest.fixture
def heard() -> list[bytes]:
    return []


@pytest.fixture
def proxy(heard: list[bytes]) -> Iterator[Proxy]:
    handler = type("Remembering", (Echo,), {"heard": heard})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        with running_proxy(server.server_address[1]) as between:
            yield between
        server.shutdown()


def connect(proxy: Proxy) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", proxy.port), timeout=60)
    connection.settimeout(60)
    return connection


def say(connection: socket.socket, word: bytes) -> bytes:
    connection.sendall(word)
    return connection.recv(100)


def ask(proxy: Proxy, word: bytes) -> bytes:
    with connect(proxy) as connection:
        return say(connection, word)


def test_cut_resets_what_is_open_and_lets_new_connections_through(proxy: Proxy) -> None:
    with connect(proxy) as first, connect(proxy) as second:
        assert say(first, b"one") == b"ONE"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            first.recv(100)
        with pytest.raises(ConnectionResetError):
            second.recv(100)
    assert ask(proxy, b"three") == b"THREE"


def test_refuse_resets_new_connections_until_resumed(proxy: Proxy) -> None:
    proxy.refuse()
    with pytest.raises(ConnectionError):
        ask(proxy, b"one")
    proxy.resume()
    assert ask(proxy, b"two") == b"TWO"


def test_a_stalled_connection_stays_silent_even_when_new_ones_go_through(proxy: Proxy, heard: list[bytes]) -> None:
    with connect(proxy) as old:
        assert say(old, b"one") == b"ONE"
        proxy.stall()
        with connect(proxy) as new:
            for connection in (old, new):
                connection.sendall(b"swallowed")
                connection.settimeout(QUIET)
                with pytest.raises(TimeoutError):
                    connection.recv(100)
            proxy.resume()
            old.sendall(b"swallowed too")
            with pytest.raises(TimeoutError):
                old.recv(100)
        assert ask(proxy, b"three") == b"THREE"
    assert heard == [b"one", b"three"]


def test_an_answer_can_be_lost_after_the_server_has_heard_the_request(proxy: Proxy, heard: list[bytes]) -> None:
    proxy.lose_answer(to=b"claim")
    with connect(proxy) as connection:
        assert say(connection, b"hello") == b"HELLO"
        with pytest.raises(ConnectionResetError):
            assert say(connection, b"please claim") == b"never"
    proxy.wait_for_loss()
    assert heard == [b"hello", b"please claim"]
    assert proxy.lost == 1
    assert ask(proxy, b"claim") == b"CLAIM"

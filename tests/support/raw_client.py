"""A client that says exactly what a test wants, for whatever HTTP clients are too polite to say."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from support.gateway_process import Served


@contextmanager
def raw_client(gateway: Served, *, receive_buffer: int | None = None) -> Iterator[socket.socket]:
    """A connection to the gateway. `receive_buffer`: as small as that, so that the gateway feels who does not read."""
    host, port = gateway.url.removeprefix("http://").split(":")
    with socket.socket() as client:
        if receive_buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.settimeout(60)
        client.connect((host, int(port)))
        yield client


def said(client: socket.socket, at_most: int = 10_000_000) -> bytes:
    """All that comes until the other side hangs up, in one way or the other."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while len(received) < at_most and (piece := client.recv(65536)):
            received += piece
    return received


def ask_raw(gateway: Served, request: bytes) -> bytes:
    """What is said to these bytes until the connection ends; `Connection: close` must be among them, or be provoked."""
    with raw_client(gateway) as client:
        with contextlib.suppress(ConnectionError):
            client.sendall(request)
        return said(client)


def status_of(answer: bytes) -> int:
    """The status of the first answer; 0 = there is none."""
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def memory_of(gateway: Served) -> int:
    """Megabytes that the gateway process has."""
    return int(psutil.Process(gateway.process.pid).memory_info().rss // 2**20)

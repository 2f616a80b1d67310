"""The server of a client that wants to be told: it takes webhooks, and answers as a test says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.waiting import wait_until

PATIENCE = 120.0


class Receiver(ThreadingHTTPServer):
    """A client's own server. `answers`: one after the other, then 204; `None` = no answer until it is let go."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Hook)
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[int | None] = []
        self.silent = 0
        self.let_go = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook?x=1"

    def wait_for(self, number: int) -> list[tuple[dict[str, str], bytes]]:
        wait_until(lambda: len(self.got) >= number, f"{number} messages have come", within=PATIENCE)
        return self.got[:number]


class _Hook(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
        status = self.server.answers.pop(0) if self.server.answers else 204
        if status is None:
            self.server.let_go.wait(PATIENCE)
            return
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "86400")
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def do_GET(self) -> None:
        assert self.path.startswith("/silent"), "a webhook is a POST, and does not follow redirects"
        self.server.silent += 1
        self.server.let_go.wait(PATIENCE)
        self.server.silent -= 1

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def receiving() -> Iterator[Receiver]:
    with Receiver() as receiver:
        thread = threading.Thread(target=receiver.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield receiver
        finally:
            receiver.let_go.set()
            receiver.shutdown()
            thread.join()

"""A small site in a thread, for tests whose crawl is in another process or has a loop of its own."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PAGES = 40


class Site:
    """Page `/` links to pages 1 to PAGES; `/gone` is not there. Knows what was asked for, and can be waited on."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.agents: set[str] = set()
        self._changed = threading.Condition()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # or else the body waits for the acknowledgement of the headers

            def do_GET(self) -> None:
                site.agents.add(self.headers.get("User-Agent", ""))
                site.note(self.path)
                links = "".join(f'<a href="/{n}">x</a>' for n in range(1, PAGES + 1)) if self.path == "/" else ""
                found = self.path.strip("/").isdigit() or self.path == "/"
                body = f"<h1>{self.path.strip('/') or 0}</h1>{links}".encode()
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def note(self, path: str) -> None:
        with self._changed:
            self.seen.append(path)
            self._changed.notify_all()

    def wait_for(self, requests: int) -> None:
        """Until so many requests have come since the last call of `forget`."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.seen) >= requests, timeout=60)

    def forget(self) -> None:
        with self._changed:
            self.seen.clear()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

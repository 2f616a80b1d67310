"""Object storage by URL: one object, there when it is complete, at whatever endpoint speaks S3."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
import pytest

from shoal.errors import UsageError
from shoal.frontier.contract.reader import Item
from shoal.runs.export.export import export
from shoal.runs.export.output import OutputOptions, output_for
from shoal.runs.export.places.local_file import IfExists


class Bucket:
    """As much of S3 as an export needs: HEAD and PUT of whole objects."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.broken = False
        bucket = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self) -> None:
                self._answer(403 if bucket.broken else 200 if self.path in bucket.objects else 404)

            def do_PUT(self) -> None:
                bucket.objects[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
                self._answer(200)

            def _answer(self, status: int) -> None:
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.send_header("ETag", '"x"')
                self.send_header("Last-Modified", "Sun, 01 Mar 2026 10:00:00 GMT")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    bucket = Bucket()
    yield bucket
    bucket.close()


async def source() -> AsyncIterator[Item]:
    yield Item("https://shop.example/", None, msgspec.Raw(b'{"a":1}'))


async def test_an_object_is_written_and_neither_lost_nor_added_to(bucket: Bucket) -> None:
    target = f"s3://mine/some/items.jsonl?endpoint={bucket.endpoint}&region=eu-west-1"
    output = output_for(target)
    assert bucket.objects == {}, "only asked for"
    assert await export(source, output, "run") == 1
    assert bucket.objects == {"/mine/some/items.jsonl": b'{"a":1}\n'}
    with pytest.raises(UsageError, match=r"s3://mine/some/items\.jsonl' exists already"):
        output_for(target)
    with pytest.raises(UsageError, match="cannot be appended to"):
        output_for(target, OutputOptions(if_exists=IfExists.APPEND))
    assert await export(source, output_for(target, OutputOptions(if_exists=IfExists.REPLACE)), "run") == 1


def test_a_storage_that_refuses_us_is_one_sentence_before_anything_is_done(bucket: Bucket) -> None:
    bucket.broken = True
    with pytest.raises(UsageError, match=r"The output s3://mine/a\.csv cannot be used: ") as caught:
        output_for(f"s3://mine/a.csv?endpoint={bucket.endpoint}&region=eu-west-1")
    assert "hidden" not in str(caught.value)
    assert "\n" not in str(caught.value)

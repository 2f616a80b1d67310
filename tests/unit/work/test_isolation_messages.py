"""Requests between a worker and its handler processes: nothing that one says is lost on the way."""

from __future__ import annotations

import msgspec

from shoal import FormFile, Request
from shoal.api.request_body import written
from shoal.work.isolation.messages import SentRequest, encoder


def sent_and_received(request: Request) -> Request:
    return msgspec.msgpack.decode(encoder.encode(SentRequest.of(request)), type=SentRequest).received()


def test_a_request_arrives_with_all_that_it_says() -> None:
    request = Request(
        "https://x.example/", "detail", {"n": 1}, "g", 2, "bulk", "6h", "PUT", {"A": "b"}, b"x", dedup=False, every=5.0,
        timeout="2s", accept=[404], redirects=False,
    )  # fmt: skip
    assert sent_and_received(request) == request
    assert sent_and_received(Request("https://x.example/")) == Request("https://x.example/")


def test_what_it_says_in_short_arrives_written_out() -> None:
    for request in (
        Request("https://x.example/", json={"a": [1]}, cookies={"b": "c"}),
        Request("https://x.example/", form={"f": FormFile("n", b"\0")}),
    ):
        assert written(sent_and_received(request)) == written(request)

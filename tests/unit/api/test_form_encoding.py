"""Bodies of requests: forms in their three encodings, read back by other people's parsers; JSON; cookies."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qsl

import pytest
from aiohttp import MultipartReader
from aiohttp.base_protocol import BaseProtocol
from aiohttp.streams import StreamReader
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import FormFile, Request
from shoal.api.form_encoding import MULTIPART, PLAIN, FormEntry, encoded_form
from shoal.api.request_body import Written, written

URL = "https://x.example/"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\r\n"), min_size=1, max_size=20)
"""Browsers send other control characters as they are, and parsers of headers refuse them."""
FILES = st.builds(FormFile, NAMES, st.binary(max_size=200), st.just("image/png"))


def breaks(text: str) -> str:
    """As forms send them: with the line breaks of the web."""
    return "\r\n".join(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


def quoted(text: str) -> str:
    return text.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


async def read_multipart(body: bytes, content_type: str) -> list[tuple[str | None, str | None, bytes, str | None]]:
    loop = asyncio.get_running_loop()
    stream = StreamReader(BaseProtocol(loop), 2**20, loop=loop)
    stream.feed_data(body)
    stream.feed_eof()
    parts = []
    async for part in MultipartReader({"Content-Type": content_type}, stream):
        assert not isinstance(part, MultipartReader)
        assert part is not None
        parts.append((part.name, part.filename, bytes(await part.read()), part.headers.get("Content-Type")))
    return parts


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=6))
def test_what_is_urlencoded_is_read_back(entries: list[FormEntry]) -> None:
    body, kind = encoded_form(entries)
    assert kind == "application/x-www-form-urlencoded"
    read = parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(entries), max_num_fields=10)
    assert read == [(breaks(name), breaks(str(value))) for name, value in entries]


@given(st.lists(st.tuples(NAMES, TEXTS | FILES), min_size=1, max_size=5))
@settings(deadline=None, max_examples=60)
def test_what_is_multipart_is_read_back_files_and_all(entries: list[FormEntry]) -> None:
    body, kind = encoded_form(entries, MULTIPART)
    parts = asyncio.run(read_multipart(body, kind))
    assert [(content, of) for _, _, content, of in parts] == [
        (value.content, "image/png") if isinstance(value, FormFile) else (breaks(value).encode(), None)
        for _, value in entries
    ]
    heads = body.split(b"\r\n")
    for name, value in entries:
        line = f'Content-Disposition: form-data; name="{quoted(breaks(name))}"'
        line += f'; filename="{quoted(value.name)}"' if isinstance(value, FormFile) else ""
        assert line.encode() in heads


async def test_the_names_of_a_multipart_form_are_read_back() -> None:
    entries: list[FormEntry] = [("a b", "1"), ("ü", "☃"), ("f", FormFile("dir/é.png", b"\0\r\n--x", "image/png"))]
    parts = await read_multipart(*encoded_form(entries, MULTIPART))
    assert [(name, filename) for name, filename, _, _ in parts] == [("a b", None), ("ü", None), ("f", "dir/é.png")]


def test_the_same_form_is_the_same_request_and_no_content_can_contain_its_boundary() -> None:
    body, kind = encoded_form([("a", "1")], MULTIPART)
    assert (body, kind) == encoded_form([("a", "1")], MULTIPART)
    boundary = kind.partition("boundary=")[2]
    again, other = encoded_form([("a", "1"), ("b", f"--{boundary}--")], MULTIPART)
    assert boundary not in other
    assert again.count(b"--" + other.partition("boundary=")[2].encode()) == 3


def test_plain_text_and_other_charsets() -> None:
    assert encoded_form([("a", "1\n2"), ("b", FormFile("n", b""))], PLAIN) == (b"a=1\r\n2\r\nb=n\r\n", "text/plain")
    assert encoded_form([("é", "☃~*-._ ")], charset="cp1252")[0] == b"%E9=%26%239731%3B%7E*-._+"


class TestRequests:
    def test_json_is_the_body_and_the_method_is_post_unless_another_is_named(self) -> None:
        sent = written(Request(URL, json={"q": "é", "n": [1, None]}))
        assert sent == Written("POST", {"Content-Type": "application/json"}, '{"q":"é","n":[1,null]}'.encode())
        assert written(Request(URL, json=[], method="put")).method == "PUT"
        assert written(Request(URL, json=0)).body == b"0"

    def test_a_form_is_the_body(self) -> None:
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        sent = written(Request(URL, form={"a": "1 2", "b": [3, 4.5], "c": None, "d": ""}))
        assert sent == Written("POST", kind, b"a=1+2&b=3&b=4.5&d=")
        assert written(Request(URL, form=[("a", "1"), ("a", "2")])).body == b"a=1&a=2"

    def test_a_form_with_files_is_multipart(self) -> None:
        sent = written(Request(URL, form={"a": "1", "f": FormFile("n", b"x")}))
        assert sent.headers is not None
        assert sent.headers["Content-Type"].startswith("multipart/form-data; boundary=")

    def test_a_content_type_of_ones_own_stays(self) -> None:
        own = {"content-type": "application/vnd.api+json"}
        assert written(Request(URL, json={}, headers=own)).headers == own

    def test_cookies_are_a_header(self) -> None:
        assert written(Request(URL, cookies={"a": "1", "b": ""})) == Written("GET", {"Cookie": "a=1; b="}, None)

    def test_what_is_sent_as_it_is_given_stays_so(self) -> None:
        assert written(Request(URL, method="post", body="é", headers={"A": "b"})) == Written(
            "POST", {"A": "b"}, "é".encode()
        )
        assert written(Request(URL)) == Written("GET", None, None)

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"json": {}, "form": {}}, "it has json and form, and only one of them can be sent"),
            ({"json": {}, "body": b"x"}, "it has body and json"),
            ({"json": {"x": object()}}, "its json cannot be put into JSON"),
            ({"form": "a=1"}, "form takes a mapping"),
            ({"form": {"a": True}}, "the field 'a' of a form cannot be True"),
            ({"form": {1: "a", b"b": "c"}}, "the field b'b' of a form cannot be b'b'"),
            ({"form": {"f": FormFile("n", b"")}, "headers": {"Content-Type": "x"}}, "its headers have Content-Type"),
            ({"cookies": {"a": "1"}, "headers": {"cookie": "b=2"}}, "say it once"),
            ({"cookies": {"a b": "1"}}, "'a b' cannot be the name of a cookie"),
            ({"cookies": {"a": "secret;x"}}, "the cookie 'a' has a value that cannot be sent"),
        ],
    )
    def test_what_cannot_be_sent_is_said_and_no_secret_with_it(self, options: dict[str, Any], said: str) -> None:
        with pytest.raises(ValueError) as wrong:  # noqa: PT011 - the text is looked at
            written(Request(URL, **options))
        assert said in str(wrong.value)
        assert "secret" not in str(wrong.value)

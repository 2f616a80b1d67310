"""What Shoal uses of aiohttp and aiohttp-socks below their public face, by name.

Their ClientSession sends a request again by itself, which nobody may do behind the back of a politeness clock; so the
fetcher goes one layer deeper. If one of these fails after an upgrade, the sentence says what has changed for whom.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import pytest
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import BaseConnector, Connection
from aiohttp.http_parser import RawResponseMessage
from aiohttp_socks import ProxyConnector

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


class Internal(NamedTuple):
    """An attribute that is used, the parameters it is called with, and what for."""

    owner: type
    name: str
    parameters: tuple[str, ...]
    used: str


INTERNALS = [
    Internal(aiohttp.ClientRequest, "__init__", ("method", "url", "headers", "loop", "proxy", "proxy_headers"),
             "fetch/http.py tells the connector by it where to connect"),
    Internal(BaseConnector, "connect", ("req", "traces", "timeout"), "fetch/http.py opens connections by it"),
    Internal(Connection, "protocol", (), "fetch/http.py writes requests to it"),
    Internal(Connection, "release", (), "fetch/http.py gives connections back by it"),
    Internal(Connection, "close", (), "fetch/http.py hangs up by it"),
    Internal(ResponseHandler, "should_close", (), "fetch/http.py sees by it that a server spoke unasked"),
    Internal(ResponseHandler, "start_timeout", (), "fetch/http.py bounds the wait for the first byte by it"),
    Internal(ResponseHandler, "read_timeout", (), "fetch/http.py bounds silence within a body by it"),
    Internal(ResponseHandler, "read", (), "fetch/http.py reads the head of an answer by it"),
    Internal(ResponseHandler, "set_response_params",
             ("skip_payload", "read_until_eof", "auto_decompress", "read_timeout", "max_field_size", "max_headers"),
             "fetch/http.py says by it how an answer is parsed"),
    Internal(aiohttp.TCPConnector, "__init__", ("socket_factory", "resolver", "local_addr", "ttl_dns_cache"),
             "fetch/exit_connections.py binds exits and the guard by it"),
    Internal(aiohttp.StreamReader, "readany", (), "fetch/body.py reads bodies by it"),
    Internal(ProxyConnector, "_connect_via_proxy", ("host", "port", "ssl", "timeout"),
             "fetch/guard/sockets.py checks by it where a SOCKS proxy connects to"),
]  # fmt: skip


@pytest.mark.parametrize("internal", INTERNALS, ids=lambda each: f"{each.owner.__name__}.{each.name}")
def test_what_is_used_is_still_there(internal: Internal) -> None:
    owner, name, parameters, used = internal
    library = "aiohttp-socks" if owner is ProxyConnector else "aiohttp"
    place = f"{owner.__name__}.{name} of {library} {version(library)}"
    assert hasattr(owner, name), f"{place} is gone: {used}."
    if parameters:
        known = inspect.signature(getattr(owner, name)).parameters
        missing = set(parameters) - set(known)
        assert not missing, f"{place} does not take {', '.join(sorted(missing))} any more: {used}."


def test_the_head_of_an_answer_has_what_is_read_of_it() -> None:
    fields = set(getattr(RawResponseMessage, "_fields", ())) or set(dir(RawResponseMessage))
    missing = {"code", "headers", "should_close"} - fields
    assert not missing, f"RawResponseMessage has no {missing} any more: fetch/http.py and fetch/body.py read it."


def test_an_answer_without_a_body_has_the_one_empty_payload() -> None:
    assert aiohttp.EMPTY_PAYLOAD.is_eof(), "EMPTY_PAYLOAD does not end at once any more: fetch/body.py relies on it."


@pytest.mark.parametrize("library", ["aiohttp", "aiohttp-socks"])
def test_a_version_that_nobody_has_tried_is_not_installed(library: str) -> None:
    asked: list[str] = tomllib.loads(PYPROJECT.read_text())["project"]["dependencies"]
    [entry] = [each for each in asked if each.startswith(f"{library}>")]
    bounds = re.fullmatch(rf"{library}>=([0-9.]+),<([0-9.]+)", entry)
    assert bounds is not None, f"{library} has no upper bound in pyproject.toml, and its internals are used."

    def number(text: str) -> tuple[Any, ...]:
        return tuple(int(part) for part in text.split(".")[:3])

    assert number(bounds[1]) <= number(version(library)) < number(bounds[2])

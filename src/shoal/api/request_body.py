"""What a Request says in short (`json=`, `form=`, `cookies=`) as it is sent: method, headers and body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from shoal.api.form_encoding import MULTIPART, URLENCODED, FormFile, encoded_form, entries_of
from shoal.api.request import Request

_UNENCODABLE = (TypeError, ValueError, OverflowError, RecursionError, NotImplementedError)
_COOKIE_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_COOKIE_VALUE = re.compile(r"[!-:<-~]*").fullmatch


class Written(NamedTuple):
    """The parts of a request that are more than its URL."""

    method: str
    headers: dict[str, str] | None
    body: bytes | None


def written(request: Request) -> Written:
    """Method, headers and body of a request. With `json` or `form` the method is POST unless another is named.

    Raises ValueError with a phrase for what cannot be sent, UnicodeError for text with half a character, and TypeError
    or AttributeError for what is of no type.
    """
    headers = dict(request.headers) if request.headers else {}
    named = {name.lower() for name in headers}
    method = request.method.upper()
    body = request.body.encode() if isinstance(request.body, str) else request.body
    if request.cookies is not None:
        if "cookie" in named:
            raise ValueError("its headers have Cookie, and it has cookies; say it once")
        headers["Cookie"] = _cookie(request.cookies)
    if request.json is not None or request.form is not None:
        given = [name for name in ("body", "json", "form") if getattr(request, name) is not None]
        if len(given) > 1:
            raise ValueError(f"it has {' and '.join(given)}, and only one of them can be sent")
        body, kind = _encoded(request)
        if "content-type" not in named:
            headers["Content-Type"] = kind
        elif kind.startswith(MULTIPART):
            raise ValueError("its headers have Content-Type, which a form with files needs for itself")
        method = "POST" if method == "GET" else method
    return Written(method, headers or None, body)


def _encoded(request: Request) -> tuple[bytes, str]:
    if request.form is not None:
        entries = entries_of(request.form)
        has_files = any(isinstance(value, FormFile) for _, value in entries)
        return encoded_form(entries, MULTIPART if has_files else URLENCODED)
    try:
        return msgspec.json.encode(request.json), "application/json"
    except UnicodeError:  # half a character, as pages may have it
        raise
    except _UNENCODABLE as error:
        raise ValueError(f"its json cannot be put into JSON: {error}") from None


def _cookie(cookies: Mapping[str, str]) -> str:
    for name, value in cookies.items():
        if not isinstance(name, str) or not _COOKIE_NAME(name):
            raise ValueError(f"{name!r} cannot be the name of a cookie")
        if not isinstance(value, str) or not _COOKIE_VALUE(value):
            raise ValueError(f"the cookie {name!r} has a value that cannot be sent")  # and that is nobody's to see
    return "; ".join(f"{name}={value}" for name, value in cookies.items())

"""Answers of sites, made up by chance: heads, bodies and links that nobody meant, each from its number alone."""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable

STATUSES = (*[200] * 60, 201, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 410, 418, 451, 500, 503, 599)
TEXTS = (
    "milk", "", " ", "\x00", "a\x00b", "\ud800", "\U0001f41f" * 3, "é" * 200, "\u202e", "%", "%00", "%ff%fe", "'; --",
    "<b>", "&#0;", "&#xd800;", "&amp;" * 50, "x" * 5_000, "\r\nX: y", "../" * 40, "NaN",
    "1e999", "-0", "\ufeff", "\x85",
)  # fmt: skip
LINKS = (
    "/good/{n}", "{n}", "", "#", "?", "//", "///", ":", "http:", "http://", "http:///x", "https://[::1", "//h/\x00",
    "http://" + "h" * 4_600 + ".test/", "http://" + "h." * 300 + "test/", "http://a@b@127.0.0.1:9/", "http://127.0.0.1:99999/",
    "http://127.0.0.1:-1/", "javascript:void(0)", "data:text/html,x", "mailto:a@b", "ftp://h/", "http://\ud800/", "http://%00/",
    "http://xn--a/", "http://\u2100/", "/" + "p" * 9_000, "/a b\tc\nd", "?q=" + "%" * 500, "\\\\h\\x", "http://0x7f.1:9/{n}",
)  # fmt: skip
CHARSETS = ("utf-8", "x", "utf-16", '"', "iso-8859-8-i", "\xff")
TYPES = ("text/html", "application/json", "image/png", "text/plain", "", "/", "a" * 400)
TAGS = (
    "div",
    "p",
    "a",
    "b",
    "i",
    "table",
    "tr",
    "td",
    "form",
    "select",
    "option",
    "svg",
    "math",
    "template",
    "script",
    "title",
)
"""Some of them are moved about by a parser, and that is where parsers go wrong."""


class OddAnswer:
    """The answer with this number: always the same bytes."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._dice = random.Random(number)

    def __bytes__(self) -> bytes:
        dice = self._dice
        body = dice.choice((self._html, self._html, self._html, self._noise, self._json, self._xml))()
        coding, body = self._coded(body)
        head = [f"HTTP/1.1 {dice.choice(STATUSES)} {dice.choice(('OK', '', 'x' * 300))}", *self._headers(), *coding]
        head.append(f"Content-Length: {len(body) + dice.choice((*[0] * 30, 7, -1 if body else 0))}")
        return "\r\n".join((*head, "Connection: close", "", "")).encode("latin-1", "replace") + body

    def _coded(self, body: bytes) -> tuple[list[str], bytes]:
        name = self._dice.choice((*[""] * 20, *["gzip", "deflate"] * 4, "gzip, deflate", "br", "x", "lie"))
        if name == "lie":
            return ["Content-Encoding: gzip"], body
        for each in name.split(", "):
            body = gzip.compress(body, 1) if each == "gzip" else zlib.compress(body, 1) if each == "deflate" else body
        return [f"Content-Encoding: {name}"] if name else [], body

    def _headers(self) -> list[str]:
        dice = self._dice
        kinds: tuple[Callable[[], str], ...] = (
            lambda: f"Content-Type: text/html; charset={dice.choice(CHARSETS)}",
            lambda: f"Content-Type: {dice.choice(TYPES)}",
            lambda: f"Location: {self._link()}",
            lambda: f"Retry-After: {dice.choice(('0', '-1', 'soon', '0x1'))}",
            lambda: (
                f"Set-Cookie: {self._text()}={self._text()}; Path={self._text()}; Domain={self._text()}; Expires=never"
            ),
            lambda: f"ETag: {self._text()}",
            lambda: f"Last-Modified: {self._text()}",
            lambda: f"X-{dice.randrange(9)}: {'v' * dice.choice((1, 3_000))}",
            lambda: f"Link: <{self._link()}>; rel=canonical",
            lambda: f"Age: {'9' * dice.randrange(30)}",
        )
        made = [dice.choice(kinds)() for _ in range(dice.randrange(5))]
        return [each.replace("\r", "").replace("\n", "").replace("\x00", "") for each in made]

    def _html(self) -> bytes:
        dice = self._dice
        parts = [dice.choice(("<!doctype html>", "<html><head>", "\ufeff", "<?xml version='1.0'?>", "<!--", ""))]
        parts += [f"<base href='{self._link()}'>"] * (dice.random() < 0.1)
        parts += [f"<meta charset={dice.choice(('utf-8', 'bogus', 'utf-7', 'x-user-defined'))}>"] * (
            dice.random() < 0.3
        )
        for _ in range(dice.randrange(40)):
            tag, text = dice.choice(TAGS), self._text()
            parts.append(
                dice.choice(
                    (
                        f"<{tag}>{text}",
                        f"</{tag}>",
                        f"<a href='{self._link()}' data-group='{text}'>{text}</a>",
                        f"<h1>{text}</h1>",
                        f'<{tag} {text}={text} class="{text}>',
                        f"<{tag}>" * dice.choice((1, 5, 300)),
                        text,
                    )
                )
            )
        return "".join(parts).encode(dice.choice(("utf-8", "utf-16", "latin-1")), "replace")

    def _noise(self) -> bytes:
        return self._dice.randbytes(self._dice.choice((0, 1, 100, 20_000)))

    def _json(self) -> bytes:
        depth = self._dice.choice((1, 50, 3_000))
        return b"[" * depth + b'{"a":"\\ud800\\u0000"}' + b"]" * self._dice.choice((depth, 0))

    def _xml(self) -> bytes:
        links = "".join(f"<url><loc>{self._link()}</loc><lastmod>{self._text()}</lastmod></url>" for _ in range(5))
        return f"<?xml version='1.0'?><urlset>{links}".encode("utf-8", "replace")

    def _text(self) -> str:
        return self._dice.choice(TEXTS)

    def _link(self) -> str:
        return self._dice.choice(LINKS).replace("{n}", str(self._dice.randrange(30)))

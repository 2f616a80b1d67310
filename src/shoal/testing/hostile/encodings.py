"""Bodies that are not what they seem: compressed, exploding, broken, or in a charset that nobody names rightly."""

from __future__ import annotations

import gzip
import struct
import zlib
from functools import lru_cache
from typing import TYPE_CHECKING

import brotli  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from shoal.testing.hostile.call import Call, Handler

PLAIN = b"<!doctype html><h1>Compressed with care</h1>"
"""The decoded body of `/gzip`, `/br` and `/deflate`."""
BOMB_MEGABYTES = 300
"""Size of every bomb when decoded; on the wire it is a thousandth or less."""

LATIN1_TEXT = "Déjà vu in the façade of a naïve smörgåsbord"
CYRILLIC_TEXT = "Съешь же ещё этих мягких французских булок"
MIXED_TEXT = "Zażółć gęślą jaźń, 鮭と鯖, שלום"

CHARSET_TEXTS: dict[str, str] = {
    "header-latin1": LATIN1_TEXT,
    "meta-1251": CYRILLIC_TEXT,
    "bom-utf16": MIXED_TEXT,
    "bom-over-header": MIXED_TEXT,
    "wrong-header": CYRILLIC_TEXT,
    "missing": MIXED_TEXT,
    "nonsense": MIXED_TEXT,
}
"""For each `/charset/{kind}`, the text of its h1 as a reader should see it."""


def _charset_page(kind: str) -> tuple[str, bytes]:
    """The Content-Type and the bytes of a kind."""
    text = CHARSET_TEXTS[kind]
    page = f"<!doctype html><html><head>{{meta}}</head><body><h1>{text}</h1></body></html>"
    bare = page.format(meta="<title>charset</title>")
    match kind:
        case "header-latin1":
            return "text/html; charset=ISO-8859-1", bare.encode("latin-1")
        case "meta-1251":
            return "text/html", page.format(meta='<meta charset="windows-1251">').encode("cp1251")
        case "bom-utf16":
            return "text/html", b"\xff\xfe" + bare.encode("utf-16-le")
        case "bom-over-header":  # the header lies, the byte order mark does not
            return "text/html; charset=ISO-8859-1", b"\xef\xbb\xbf" + bare.encode()
        case "wrong-header":  # not even decodable as the header says; the page itself tells the truth
            return "text/html; charset=utf-8", page.format(meta='<meta charset="windows-1251">').encode("cp1251")
        case "missing":
            return "text/html", bare.encode()
        case _:
            return "text/html; charset=klingon-7", page.format(meta='<meta charset="x-none">').encode()


@lru_cache
def bomb(coding: str) -> bytes:
    """`BOMB_MEGABYTES` of zeros, compressed without ever holding them: one block is repeated as it is."""
    block, count = bytes(1 << 20), BOMB_MEGABYTES
    if coding == "br":
        press = brotli.Compressor(quality=1, lgwin=22)
        return b"".join([*(press.process(block) for _ in range(count)), press.finish()])
    raw = zlib.compressobj(9, wbits=-15)
    same = raw.compress(block) + raw.flush(zlib.Z_FULL_FLUSH)
    stream = same * count + raw.flush()
    size = len(block) * count
    if coding == "deflate":
        return b"\x78\xda" + stream + struct.pack(">I", size % 65521 << 16 | 1)  # adler32 of `size` zeros
    check = 0
    for _ in range(count):
        check = zlib.crc32(block, check)
    return b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff" + stream + struct.pack("<II", check, size)


def _compress(coding: str) -> bytes:
    match coding:
        case "gzip":
            return gzip.compress(PLAIN, mtime=0)
        case "br":
            return bytes(brotli.compress(PLAIN))
        case _:
            return zlib.compress(PLAIN)


async def _bomb(call: Call, rest: list[str]) -> None:
    (coding,) = rest
    if coding not in ("gzip", "br", "deflate"):
        raise ValueError("gzip, br or deflate")
    await call.answer(bomb(coding), ("Content-Encoding", coding))


async def _good(call: Call, _rest: list[str]) -> None:
    coding = call.path.strip("/")
    await call.answer(_compress(coding), ("Content-Encoding", coding))


async def _bad_gzip(call: Call, _rest: list[str]) -> None:
    good = _compress("gzip")
    await call.answer(good[:15] + b"\xff" * 20 + good[35:], ("Content-Encoding", "gzip"))


async def _charset(call: Call, rest: list[str]) -> None:
    (kind,) = rest
    if kind not in CHARSET_TEXTS:
        raise ValueError(f"one of {', '.join(CHARSET_TEXTS)}")
    content_type, body = _charset_page(kind)
    await call.answer(body, content_type=content_type)


ROUTES: dict[str, Handler] = {
    "bomb": _bomb,
    "gzip": _good,
    "br": _good,
    "deflate": _good,
    "bad-gzip": _bad_gzip,
    "charset": _charset,
}

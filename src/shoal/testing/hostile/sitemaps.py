"""Sitemaps of every kind, good and bad. Those with a number list so many pages of `/site/{number}/`."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import TYPE_CHECKING

from shoal.testing.hostile.encodings import bomb
from shoal.testing.hostile.ordinary import site_path

if TYPE_CHECKING:
    from shoal.testing.hostile.call import Call, Handler

SITEMAP_DATES = ("2020-01-01", "2024-06-30T12:00:00+02:00")
"""The lastmod of pages with an even and an odd number."""

_XML = "application/xml"
_URLSET = b'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
_ENTITIES = b"""<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a "http://127.0.0.1/%b">%b]>
<urlset><url><loc>&z;</loc></url></urlset>""" % (
    b"a" * 1000,
    b"".join(b'<!ENTITY %c "%b">' % (name, b"&%c;" % (name - 1) * 10) for name in range(ord("b"), ord("z") + 1)),
)
_EXTERNAL = b"""<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY z SYSTEM "file:///etc/passwd">]>
<urlset><url><loc>http://127.0.0.1/&z;</loc></url></urlset>"""


def _site(call: Call) -> str:
    return f"http://{call.headers.get('host', call.host)}"


def _pages(call: Call, size: int) -> list[str]:
    return [_site(call) + site_path(size, index) for index in range(size)]


def _entries(urls: list[str]) -> bytes:
    return b"".join(
        f"<url><loc>{url}</loc><lastmod>{SITEMAP_DATES[index % 2]}</lastmod></url>\n".encode()
        for index, url in enumerate(urls)
    )


def _index(urls: list[str]) -> bytes:
    listed = "".join(f"<sitemap><loc>{url}</loc></sitemap>\n" for url in urls)
    return f'<?xml version="1.0"?>\n<sitemapindex>\n{listed}</sitemapindex>'.encode()


def _with_pages(call: Call, kind: str, size: int) -> bytes:
    urls = _pages(call, size)
    match kind:
        case "urls":
            return _URLSET + _entries(urls) + b"</urlset>"
        case "gzip":
            return gzip.compress(_URLSET + _entries(urls) + b"</urlset>")
        case "text":
            return "\n".join(urls).encode()
        case "rss":
            items = "".join(f"<item><title>a page</title><link>{url}</link></item>" for url in urls)
            return f'<rss version="2.0"><channel><link>/</link>{items}</channel></rss>'.encode()
        case "atom":
            entries = "".join(f'<entry><link href="{url}"/><updated>2024-01-01</updated></entry>' for url in urls)
            return f'<feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>'.encode()
        case "news":
            news = "<n:news><n:publication_date>2024-01-01</n:publication_date></n:news>"
            return f"<urlset>{''.join(f'<url><loc>{url}</loc>{news}</url>' for url in urls)}</urlset>".encode()
        case "images":
            shown = [
                f"<url><loc>{url}</loc><image:image><image:loc>{url}.png</image:loc></image:image></url>"
                for url in urls
            ]
            return f"<urlset>{''.join(shown)}</urlset>".encode()
        case "broken":  # in its middle
            half = size // 2
            return _URLSET + _entries(urls[:half]) + b"<url><loc>broken</url>\n" + _entries(urls[half:]) + b"</urlset>"
        case "cut":  # before its end
            return _URLSET + _entries(urls) + b"<url><loc>htt"
        case _:
            raise ValueError("no such kind")


async def _sitemap(call: Call, rest: list[str]) -> None:
    match rest:
        case ["index", files, size]:
            share = [f"{_site(call)}/sitemap/part/{number}/{files}/{size}" for number in range(int(files))]
            await call.answer(_index(share), content_type=_XML)
        case ["part", number, files, size]:
            urls = _pages(call, int(size))[int(number) :: int(files)]
            await call.answer(_URLSET + _entries(urls) + b"</urlset>", content_type=_XML)
        case ["loop"]:
            await call.answer(_index([f"{_site(call)}/sitemap/loop", f"{_site(call)}/sitemap/urls/3"]))
        case ["deep", level]:
            await call.answer(_index([f"{_site(call)}/sitemap/deep/{int(level) + 1}"]))
        case ["big", megabytes]:
            await _big(call, int(megabytes) * 10**6)
        case ["bomb"]:
            await call.answer(bomb("gzip"), content_type="application/gzip")
        case ["entities"]:
            await call.answer(_ENTITIES, content_type=_XML)
        case ["external"]:
            await call.answer(_EXTERNAL, content_type=_XML)
        case ["html"]:
            await call.answer("<!doctype html><html><body>404, but politely</body></html>")
        case [kind, size]:
            await call.answer(_with_pages(call, kind, int(size)), content_type=_XML)
        case _:
            raise ValueError("no such sitemap")


async def _big(call: Call, size: int) -> None:
    """About so many bytes, made while they are sent."""
    call.begin(200, ("Content-Type", _XML), ("Connection", "close"))
    call.hang_up()
    for piece in big_sitemap(_site(call), size):
        await call.send(piece)


def big_sitemap(site: str, size: int) -> Iterator[bytes]:
    """A sitemap of about `size` bytes, in pieces. Its pages are `/site/{many}/p/{index}`."""
    yield _URLSET
    sent = len(_URLSET)
    index = 0
    while sent < size:
        piece = _entries([f"{site}/site/9999999/p/{number}" for number in range(index, index + 1000)])
        index += 1000
        sent += len(piece)
        yield piece
    yield b"</urlset>"


ROUTES: dict[str, Handler] = {"sitemap": _sitemap}

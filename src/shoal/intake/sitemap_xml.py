"""Sitemaps, indexes and feeds as XML: read piece by piece, nothing of them kept, and on past what is broken.

The parser is expat: it builds no tree, so that memory does not grow with the file, and it tells of entities where they
are declared, before anything could be made of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import urljoin
from xml.parsers import expat

MOST_NESTED = 32
MOST_TROUBLES = 100
LONGEST_TAG = 2**20
"""A file with more bytes than this from one `>` to the next, or in one tag or comment, is given up: the parser holds
what has not ended, and reads it anew with every piece that comes."""
LONGEST_VALUE = 20_000
"""Characters of one value that are looked at. No URL that Shoal fetches is that long."""
AT_ONCE = 2**16
"""The parser is given no fewer bytes at a time: it reads anew what has not ended with those before."""
LONGEST_BASE = 2_000
"""Characters of what addresses are relative to. A short address costs as much as its base is long."""
MOST_MEDIA = 1_000
"""Images and videos that are taken of one page, as many as the protocol allows."""
MOST_NAMES = 2_000
"""Different names of tags and attributes in one file. The parser remembers each of them."""


class Unreadable(Exception):
    """Nothing (more) can be had from this file. The text is a short phrase."""


class Listed(StrEnum):
    """What an entry is an address of."""

    PAGE = "page"
    SITEMAP = "sitemap"


@dataclass(slots=True)
class SitemapEntry:
    """One address in a sitemap, as it is written there. `media`: images and videos on that page."""

    url: str = ""
    lastmod: str | None = None
    listed: Listed = Listed.PAGE
    media: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Form:
    """Where a kind of file has its entries, and in them (`parent/name`) the address and the date, best first."""

    entry: str
    depth: int
    urls: tuple[str, ...]
    dates: tuple[str, ...]
    listed: Listed = Listed.PAGE
    media: tuple[str, ...] = ()


_FORMS = {
    "urlset": _Form(
        "url", 2, ("url/loc",), ("url/lastmod", "news/publication_date"), media=("image/loc", "video/content_loc")
    ),
    "sitemapindex": _Form("sitemap", 2, ("sitemap/loc",), ("sitemap/lastmod",), Listed.SITEMAP),
    "rss": _Form("item", 3, ("item/link", "item/guid"), ("item/pubDate", "item/date", "item/updated")),
    "RDF": _Form("item", 2, ("item/link", "item/about"), ("item/date",)),
    "feed": _Form("entry", 2, ("entry/link",), ("entry/updated", "entry/published")),
}
_STRAY_AMPERSAND = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_LONGEST_REFERENCE = 12
_STRETCH = 2**14
_CDATA = b"<![CDATA["
_DECLARATION = re.compile(rb"<\?xml\s[^>]*>")


class XmlReader:
    """Takes the bytes of a file in UTF-8 and gives its entries. `troubles`: what was broken and passed over, with line.

    Where the XML is broken the entry that is affected is left out, and reading goes on at the next one.
    Raises Unreadable for what is no sitemap and for what is made to harm, after the entries before that were given.
    """

    def __init__(self) -> None:
        self.troubles: list[str] = []
        self._form: _Form | None = None
        self._tag = b""
        self._opening = b""
        self._base = ""
        self._words: set[str] = set()
        self._carry = b""
        self._in_cdata = False
        self._lost = False
        self._line = 0
        self._found: list[SitemapEntry] = []
        self._end_of_it: Unreadable | None = None
        self._start_parser()

    def feed(self, data: bytes, *, last: bool = False) -> list[SitemapEntry]:
        """The entries that are complete with these bytes. They may be held until there are more, unless they are the
        last ones."""
        if self._end_of_it is not None:
            raise self._end_of_it
        try:
            self._take(data, last=last)
        except Unreadable as error:
            if not self._found:
                raise
            self._end_of_it = error
        return self._taken()

    def close(self) -> list[SitemapEntry]:
        """The entries that only the end of the file completes. Raises Unreadable if there is nothing in it."""
        if self._end_of_it is not None:
            raise self._end_of_it
        if self._form is None:
            raise Unreadable("it is not XML" if self._carry.strip() else "it is empty")
        if not self._lost:
            self._parse(self._carry, last=True)
        return self._taken()

    def _take(self, data: bytes, *, last: bool) -> None:
        data = self._carry + data
        if len(data) < AT_ONCE and not last:
            self._carry = data
            return
        cut = data.rfind(b">") + 1
        self._carry = data[cut:]
        if len(self._carry) > LONGEST_TAG:
            raise _endless()
        if cut:
            whole = self._repaired(data[:cut])
            if self._form is None:  # how it is encoded is known already, and some have something before it
                whole = _DECLARATION.sub(b"", whole, count=1)
            self._parse(whole)

    def _taken(self) -> list[SitemapEntry]:
        found, self._found = self._found, []
        return found

    def _repaired(self, data: bytes) -> bytes:
        """`&` where `&amp;` was meant, the most common mistake of all. In CDATA it means what it says."""
        if b"&" not in data and _CDATA not in data and not self._in_cdata:
            return data
        parts: list[bytes] = []
        while data:
            if self._in_cdata:
                inside, mark, data = data.partition(b"]]>")
                parts.append(inside + mark)
                self._in_cdata = not mark
            else:
                outside, mark, data = data.partition(_CDATA)
                parts += (_STRAY_AMPERSAND.sub(b"&amp;", stretch) for stretch in _stretches(outside))
                parts.append(mark)
                self._in_cdata = bool(mark)
        return b"".join(parts)

    # Going on past what is broken

    def _parse(self, data: bytes, *, last: bool = False) -> None:
        if self._lost:
            data = self._next_entry(data, 0)
        while data or last:
            begin = self._fed
            self._fed += len(data)
            try:
                self._parser.Parse(data, last)
            except expat.ExpatError as error:
                self._line += error.lineno - 1
                self._complain("the file is cut short" if last else expat.ErrorString(error.code) or "broken")
                at = self._parser.ErrorByteIndex - begin
                data = self._next_entry(data, at + 1 if at >= 0 else 0)
                last = last and not self._lost
            else:
                if self._fed - self._parser.CurrentByteIndex > LONGEST_TAG:
                    raise _endless()
                return

    def _complain(self, what: str) -> None:
        if self._form is None:
            raise Unreadable(f"broken XML at line {self._line + 1}: {what}")
        self.troubles.append(f"line {self._line + 1}: {what}")
        if len(self.troubles) >= MOST_TROUBLES:
            raise Unreadable(f"broken XML in {MOST_TROUBLES} places, the last at line {self._line + 1}: {what}")

    def _next_entry(self, data: bytes, at: int) -> bytes:
        """Begin anew at the next entry behind `at`; nothing is left if there is none in this piece."""
        found = re.compile(rb"<%b[\s/>]" % re.escape(self._tag)).search(data, at) if self._tag else None
        end = found.start() if found else len(data)
        self._line += data.count(b"\n", at, end)
        self._lost = found is None
        if found is None:
            return b""
        self._start_parser()
        self._parser.Parse(self._opening, False)
        self._bases[-1] = self._base
        self._fed = len(self._opening)
        return data[end:]

    # What the parser calls

    def _start_parser(self) -> None:
        self._parser = parser = expat.ParserCreate("utf-8", intern=None)  # no table of names
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.EntityDeclHandler = _refuse_entity
        self._fed = 0
        self._depth = 0
        self._names: list[str] = []
        self._bases: list[str] = [""]
        """What addresses are relative to (`xml:base`), for each tag that is open; empty = to the file."""
        self._entry: dict[str, str] | None = None
        self._media: list[str] = []
        self._text: list[str] = []
        self._length = 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise Unreadable(f"tags nested more than {MOST_NESTED} deep")
        self._words.update((name, *attributes))
        if len(self._words) > MOST_NAMES:
            raise Unreadable(f"more than {MOST_NAMES:,} different names of tags")
        self._names.append(name)
        base = attributes.get("xml:base", "")[:LONGEST_BASE]
        self._bases.append(_joined(self._bases[-1], base)[:LONGEST_BASE] if base else self._bases[-1])
        local = _local(name)
        form = self._form
        if form is None:
            self._form = _form_of(local)
        elif self._entry is not None:
            self._start_value(form, self._entry, local, attributes)
        elif self._depth == form.depth and local == form.entry:
            self._tag = name.encode()
            self._opening = "".join(f"<{above}>" for above in self._names[:-1]).encode()
            self._base = self._bases[-2]
            self._entry = {"item/about": about} if (about := attributes.get("rdf:about")) else {}
            self._media = []

    def _start_value(self, form: _Form, entry: dict[str, str], local: str, attributes: dict[str, str]) -> None:
        if local == "link" and (href := attributes.get("href")):
            if self._depth == form.depth + 1 and attributes.get("rel", "alternate") == "alternate":
                entry.setdefault("entry/link", _joined(self._bases[-1], href))
        elif local == "guid" and attributes.get("isPermaLink", "true").strip().lower() != "true":
            return
        elif self._depth <= form.depth + 2:
            self._text, self._length = [], 0
            self._parser.CharacterDataHandler = self._data

    def _data(self, text: str) -> None:
        self._length += len(text)
        if self._length <= LONGEST_VALUE:
            self._text.append(text)

    def _end(self, _name: str) -> None:
        self._depth -= 1
        self._bases.pop()
        local = _local(self._names.pop())
        form, entry = self._form, self._entry
        if form is None or entry is None:
            return
        if self._depth == form.depth - 1:
            self._entry = None
            self._finish(form, entry)
        elif self._parser.CharacterDataHandler is not None:
            self._parser.CharacterDataHandler = None
            if self._text and (value := "".join(self._text).strip()):
                place = f"{_local(self._names[-1])}/{local}"
                if place in form.urls or place in form.dates:
                    entry.setdefault(place, value)
                elif place in form.media and len(self._media) < MOST_MEDIA:
                    self._media.append(value)

    def _finish(self, form: _Form, entry: dict[str, str]) -> None:
        url = next((entry[place] for place in form.urls if place in entry), None)
        if url is not None:
            lastmod = next((entry[place] for place in form.dates if place in entry), None)
            self._found.append(SitemapEntry(url, lastmod, form.listed, self._media))


def _stretches(data: bytes) -> Iterator[bytes]:
    """In stretches that cut no reference in two: what is replaced is held piece by piece meanwhile."""
    at = 0
    while at < len(data):
        end = at + _STRETCH
        if end < len(data):
            reference = data.rfind(b"&", end - _LONGEST_REFERENCE, end)
            end = reference if reference > 0 else end
        yield data[at:end]
        at = end


def _joined(base: str, address: str) -> str:
    """What cannot be joined stays as it is, and is refused where it is looked at as a URL."""
    try:
        return urljoin(base, address) if base else address
    except ValueError:
        return address


def _local(name: str) -> str:
    return name.rpartition(":")[2]


def _form_of(root: str) -> _Form:
    form = _FORMS.get(root)
    if form is None:
        kind = "an HTML page" if root.lower() == "html" else f"XML of another kind (<{root[:40]}>)"
        raise Unreadable(f"it is not a sitemap but {kind}")
    return form


def _endless() -> Unreadable:
    return Unreadable(f"more than {LONGEST_TAG // 2**20} MB without the end of a tag")


def _refuse_entity(*_declaration: object) -> None:
    raise Unreadable("it declares entities, which no sitemap needs and some use to do harm")

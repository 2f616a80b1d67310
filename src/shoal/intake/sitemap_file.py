"""A sitemap as it comes over the wire, whatever its name and headers say: gzip or not, XML or a list of lines."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator

from shoal.intake.sitemap_xml import MOST_TROUBLES, SitemapEntry, Unreadable, XmlReader

MOST_BYTES = 200 * 2**20
"""Largest file that is read, after decompression: four times what the sitemap protocol allows."""

MOST_URLS = 1_000_000
"""Most entries that are taken from one file: twenty times what the protocol allows."""

MOST_LAYERS = 3
MOST_MEMBERS = 1000
LONGEST_LINE = 16_384

_URL_LINE = re.compile(r"https?://\S+", re.IGNORECASE).fullmatch
_STEP = 2**17
_HEAD = 1024
_GZIP = b"\x1f\x8b"
_DECLARED = re.compile(rb"""encoding\s*=\s*["']([A-Za-z0-9._-]+)""")
_ASCII_LIKE = re.compile(
    r"(us-)?ascii|iso-?8859-?\d+|latin-?1|windows-\d+|cp\d+|koi8-[ru]|gb\d+|gbk|big5|euc-\w+|shift_jis", re.IGNORECASE
)
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


class SitemapReader:
    """Takes the bytes of one file as they come and gives its entries as they are complete. Memory stays flat.

    `taken`: entries so far. `full`: there was more than is taken of one file, and the rest is not looked at.
    Raises Unreadable, and nothing else, for what is no sitemap, too large, or made to harm.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_urls: int = MOST_URLS) -> None:
        self._most_bytes = most_bytes
        self._most_urls = most_urls
        self._bytes = 0
        self._packing = _Unpacking()
        self._content = _Content()
        self.taken = 0
        self.full = False

    @property
    def troubles(self) -> list[str]:
        """What was broken and passed over, each with its place."""
        cut = [] if self._packing.complete else ["the gzip data is cut short"]
        return [*self._content.troubles, *cut]

    def feed(self, data: bytes) -> Iterator[SitemapEntry]:
        """The entries that are complete with these bytes, in steps as they are asked for."""
        for piece in self._packing.feed(data):
            self._bytes += len(piece)
            if self._bytes > self._most_bytes:
                packed = ", unpacked" if self._packing.packed else ""
                raise Unreadable(f"it is larger than {self._most_bytes / 2**20:g} MB{packed}")
            yield from self._limited(self._content.feed(piece))
            if self.full:
                return

    def close(self) -> Iterator[SitemapEntry]:
        """The rest. Raises Unreadable if nothing at all could be made of the file."""
        if not self.full:
            yield from self._limited(self._content.feed(self._packing.begun, last=True))
        if not self.full:
            yield from self._limited(self._content.close())

    def _limited(self, entries: list[SitemapEntry]) -> list[SitemapEntry]:
        room = self._most_urls - self.taken
        self.full = len(entries) > room
        self.taken += min(len(entries), room)
        return entries[:room]


class _Unpacking:
    """Takes gzip off, as often as it is found, by how the data begins."""

    def __init__(self, layer: int = 0) -> None:
        self._layer = layer
        self._stream: zlib._Decompress | None = None
        self._inner: _Unpacking | None = None
        self._members = 0
        self._decided = False
        self.begun = b""
        """The beginning of a file that is too short to tell what it is."""

    @property
    def packed(self) -> bool:
        return self._inner is not None

    @property
    def complete(self) -> bool:
        """Whether no gzip data is missing at the end."""
        return self._stream is None or self._inner is None or (self._stream.eof and self._inner.complete)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The unpacked bytes, in steps."""
        if not self._decided:
            data = self.begun + data
            self._decided = len(data) >= len(_GZIP)
            self.begun = b"" if self._decided else data
            if not self._decided:
                return
            if data.startswith(_GZIP):
                self._begin()
        if self._inner is None:
            yield data
            return
        while data:
            piece, data = self._step(data)
            yield from self._inner.feed(piece)

    def _begin(self) -> None:
        if self._layer == MOST_LAYERS:
            raise Unreadable(f"it is packed into gzip more than {MOST_LAYERS} times")
        self._stream = zlib.decompressobj(31)
        self._inner = _Unpacking(self._layer + 1)

    def _step(self, data: bytes) -> tuple[bytes, bytes]:
        """One step of unpacked bytes, and what is left to unpack. Rubbish behind the end is not looked at."""
        stream = self._stream
        if stream is None or stream.eof:
            self._members += 1
            if not _GZIP.startswith(data[:2]) or self._members > MOST_MEMBERS:
                return b"", b""
            stream = self._stream = zlib.decompressobj(31)
        try:
            piece = stream.decompress(data, _STEP)
        except zlib.error:
            raise Unreadable("the gzip data is damaged") from None
        return piece, stream.unconsumed_tail or stream.unused_data


class _Content:
    """From unpacked bytes to entries: which encoding, and whether XML or lines, is told by the first kilobyte that is
    not blank."""

    def __init__(self) -> None:
        self._head: bytes | None = b""
        self._decoder: codecs.IncrementalDecoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._form: XmlReader | _Lines = _Lines()
        self._blank = True

    @property
    def troubles(self) -> list[str]:
        return self._form.troubles

    def feed(self, data: bytes, *, last: bool = False) -> list[SitemapEntry]:
        if self._head is not None:
            self._head = _without_blanks(self._head + data)
            if len(self._head) < _HEAD and not last:
                return []
            data, self._head = self._begin(self._head), None
        text = self._decoder.decode(data, last)
        if self._blank:
            text = text.lstrip()
            self._blank = not text
        return self._form.feed(text.encode("utf-8", "replace"), last=last) if text or last else []

    def close(self) -> list[SitemapEntry]:
        return self._form.close()

    def _begin(self, head: bytes) -> bytes:
        """Choose how to go on. Gives back the head without the mark of its encoding."""
        encoding, mark = _encoding(head)
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        head = head.removeprefix(mark)
        text = head.decode(encoding, "replace").lstrip().lower()
        if text.startswith(("<!doctype html", "<html")):
            raise Unreadable("it is not a sitemap but an HTML page")
        if text.startswith("<"):
            self._form = XmlReader()
        return head


def _without_blanks(head: bytes) -> bytes:
    """Without what is blank at its beginning; the mark of its encoding stays."""
    mark, width = next(((mark, len(mark) % 2 or 2) for mark, _ in _MARKS if head.startswith(mark)), (b"", 1))
    if width == 1:
        return mark + head[len(mark) :].lstrip()
    at = len(mark)
    while at + width <= len(head) and head[at : at + width].strip(b"\0") in (b" ", b"\t", b"\r", b"\n"):
        at += width
    return mark + head[at:]


def _encoding(head: bytes) -> tuple[str, bytes]:
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding, mark
    _, _, declaration = head[: 2 * _HEAD].partition(b"<?xml")
    declared = _DECLARED.search(declaration.partition(b">")[0])
    name = declared[1].decode() if declared else ""
    if not _ASCII_LIKE.fullmatch(name):
        return "utf-8", b""
    try:
        return codecs.lookup(name).name, b""
    except LookupError:
        return "utf-8", b""


class _Lines:
    """A list of URLs, one per line. Blank lines and those that begin with `#` are passed over; what is no URL is a
    trouble. Where there is no URL among the first hundred lines, it is no list."""

    def __init__(self) -> None:
        self.troubles: list[str] = []
        self._carry = b""
        self._number = 0
        self._begun = False

    def feed(self, data: bytes, *, last: bool = False) -> list[SitemapEntry]:
        *lines, self._carry = (self._carry + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        if len(self._carry) > LONGEST_LINE:
            raise _no_list()
        return [SitemapEntry(line) for line in map(self._line, lines) if line]

    def close(self) -> list[SitemapEntry]:
        found = self.feed(b"\n")
        if not self._begun:
            raise _no_list() if self.troubles else Unreadable("it is empty")
        return found

    def _line(self, raw: bytes) -> str:
        line = raw.decode().strip()
        self._number += 1
        if not line or line.startswith("#"):
            return ""
        if _URL_LINE(line) is None:
            if len(self.troubles) < MOST_TROUBLES:
                self.troubles.append(f"line {self._number}: no URL")
            elif not self._begun:
                raise _no_list()
            return ""
        self._begun = True
        return line


def _no_list() -> Unreadable:
    return Unreadable("it is neither XML nor a list of URLs")

"""The page that a handler is given: one HTTP answer, parsed when it is first looked into."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from multidict import CIMultiDict
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from shoal.api.request import Request
from shoal.api.targets import check_is_selector, given_urls, not_a_target
from shoal.core.duration import Duration
from shoal.core.html.bounds import check_bounds, parse_html
from shoal.core.task import Kind
from shoal.core.url import NormalURL, Resolver
from shoal.errors import BadScraper, BadURL

if TYPE_CHECKING:
    from parsel import Selector, SelectorList

    Node = LexborNode | Selector
    Target = str | Node | Iterable[Node]

_UTF8_MARK = b"\xef\xbb\xbf"
_DECLARED = re.compile(rb"""<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*["']?\s*([a-z0-9_-]+)""").search
_FOLLOWED = ("href", "src")
_DOWNLOADED = ("src", "href", "data-src")


class Page:
    """One answer, as a handler sees it. Nothing is decoded or parsed before it is asked for.

    `url` is where the answer came from (after redirects), `depth` the number of links from the start (0 = start).
    `data` and `group` are those of the `request` that led here. `headers` ignores case.
    `refused` collects (href, reason) of links that `follow`, `links` and `download` met and that cannot be fetched.
    `unchanged`: True when the page says what it said at the scraper's last visit, in this run or any before; known
    where the scraper has `cache`, `every`, `changes` or `volatile`, or the request `every`.
    """

    __slots__ = (
        "_resolver", "_selector", "_text", "_tree",
        "body", "data", "depth", "group", "headers", "refused", "request", "status", "unchanged", "url",
    )  # fmt: skip

    def __init__(
        self,
        url: str,
        body: bytes = b"",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        request: Request | None = None,
        depth: int = 0,
    ) -> None:
        self.url = url
        self.body = body
        self.status = status
        self.headers: Mapping[str, str] = CIMultiDict() if headers is None else headers
        self.request = Request(url) if request is None else request
        self.data: Any = self.request.data
        self.group = self.request.group
        self.depth = depth
        self.unchanged = False
        self.refused: list[tuple[str, str]] = []
        self._text: str | None = None
        self._tree: LexborHTMLParser | None = None
        self._selector: Selector | None = None
        self._resolver: Resolver | None = None

    @classmethod
    def from_html(
        cls, html: str | bytes, url: str = "https://example.test/", *, data: Any = None, group: str | None = None
    ) -> Page:
        """A page made by hand, to try a handler in a unit test: `list(detail(Page.from_html("<h1>…")))`."""
        body = html.encode() if isinstance(html, str) else html
        kind = "text/html; charset=utf-8" if isinstance(html, str) else "text/html"
        return cls(url, body, headers=CIMultiDict({"Content-Type": kind}), request=Request(url, data=data, group=group))

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url} ({len(self.body)} bytes)>"

    # Reading

    @property
    def html(self) -> str:
        """The source: the whole body, decoded, whatever it is."""
        if self._text is None:
            if self._is_utf8():
                self._text = self.body.removeprefix(_UTF8_MARK).decode()
            else:
                from shoal.core.charsets.decoding import decode  # noqa: PLC0415 - seldom needed

                self._text = decode(self.body, self.headers)
        return self._text

    def text(self, selector: str) -> str | None:
        """The stripped text of the first match; None if nothing matches. For the source of the page, ask `html`."""
        node = self.css_first(selector)
        return None if node is None else node.text().strip()

    def attr(self, selector: str, name: str) -> str | None:
        """An attribute of the first match; None if nothing matches or it has no such attribute, "" if it is empty."""
        node = self.css_first(selector)
        return None if node is None else _attribute(node, name)

    def css(self, selector: str) -> list[LexborNode]:
        """All elements that match, in document order, as selectolax nodes."""
        try:
            return self._parsed().css(selector)
        except (SelectolaxError, TypeError, UnicodeEncodeError) as error:
            raise _bad_selector(selector) from error

    def css_first(self, selector: str) -> LexborNode | None:
        """The first element that matches, or None."""
        try:
            return self._parsed().css_first(selector)
        except (SelectolaxError, TypeError, UnicodeEncodeError) as error:
            raise _bad_selector(selector) from error

    def xpath(self, query: str) -> SelectorList[Selector]:
        """What an XPath finds, as parsel selectors. The page is parsed a second time for it, once."""
        if self._selector is None:
            from parsel import Selector  # noqa: PLC0415 - most scrapers never use XPath, and lxml is slow to import

            check_bounds(self.html)
            kind = self.headers.get("Content-Type", "")
            self._selector = Selector(self.html, type="xml" if "xml" in kind and "html" not in kind else "html")
        try:
            return self._selector.xpath(query)
        except ValueError as error:
            raise BadScraper(f"{query!r} is not valid XPath: {error}.") from error

    def json(self) -> Any:
        """The body as JSON. Raises ValueError with the start of the body if it is something else."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            text = self.html
        try:
            return json.loads(text)  # knows NaN and lone surrogates, which the fast decoder refuses
        except ValueError as error:
            start = text.strip()[:80] or "(nothing)"
            raise ValueError(f"{self.url} is not JSON ({error}); it begins with {start!r}.") from None

    # Going on from here

    def follow(
        self,
        what: Target,
        to: str | None = None,
        *,
        data: Any = None,
        group: str | None = None,
        priority: int | None = None,
        lane: str | None = None,
        ttl: Duration | None = None,
        dedup: bool = True,
    ) -> list[Request]:
        """Requests for what `what` points at, each address once, to be read by the handler `to` (None = the default).

        `what`: a CSS selector, a node (of `css` or `xpath`), or an iterable of nodes. For URLs there is `follow_url`;
        what looks like one here is a BadScraper.
        Links that lead nowhere by intent (`#top`, `javascript:`, `mailto:`, …) are passed over; broken ones are noted
        in `refused`. The other arguments are those of Request; `group` None = that of this page.
        """
        return [
            Request(NormalURL(url), to, data, group, priority, lane, ttl, "GET", None, None, dedup)
            for url in self._resolved(self._said_by_target("follow", what, _FOLLOWED))
        ]

    def follow_url(
        self,
        url: str | Iterable[str],
        to: str | None = None,
        *,
        data: Any = None,
        group: str | None = None,
        priority: int | None = None,
        lane: str | None = None,
        ttl: Duration | None = None,
        dedup: bool = True,
    ) -> list[Request]:
        """Requests for a URL or an iterable of URLs, which may be relative to this page; otherwise as `follow`.

        A text that looks like a selector or XPath is a BadScraper; inside an iterable every text is a URL.
        """
        return [
            Request(NormalURL(found), to, data, group, priority, lane, ttl, "GET", None, None, dedup)
            for found in self._resolved(given_urls("follow_url", url))
        ]

    def download(self, what: Target, *, name: str | None = None, group: str | None = None) -> list[Request]:
        """Requests that store files: what `what` (as in `follow`) points at by `src`, `href` or `data-src`.

        `name`: what to call the file; None = after its URL. It travels as `data["name"]` of the request.
        """
        return _files(self._resolved(self._said_by_target("download", what, _DOWNLOADED)), name, group)

    def download_url(
        self, url: str | Iterable[str], *, name: str | None = None, group: str | None = None
    ) -> list[Request]:
        """Requests that store the files at a URL or an iterable of URLs, as `download` does."""
        return _files(self._resolved(given_urls("download_url", url)), name, group)

    def links(self, selector: str = "a[href]") -> list[str]:
        """The absolute, normalised URLs that the matching elements point at, each once, in document order."""
        return self._resolved(self._said_by_target("links", selector, _FOLLOWED))

    def _resolved(self, references: Iterable[str]) -> list[str]:
        if self._resolver is None:
            self._resolver = Resolver(self._address_of_links())
        found, broken = self._resolver.join_all(references)
        self.refused += broken
        return found

    def _said_by_target(self, method: str, what: Target, attributes: tuple[str, ...]) -> Iterable[str]:
        """What is written in the links, before it is resolved."""
        if isinstance(what, str):
            check_is_selector(method, what)
            return self._said_by(self.css(what), attributes)
        if isinstance(what, LexborNode):
            return self._said_by((what,), attributes)
        if hasattr(type(what), "attrib") and not isinstance(what, list):
            return _said_by_selector(what, attributes)
        if isinstance(what, Iterable):
            return chain.from_iterable(self._said_by_node(method, node, attributes) for node in what)
        raise not_a_target(method, what)

    def _said_by_node(self, method: str, node: Any, attributes: tuple[str, ...]) -> Iterable[str]:
        if isinstance(node, LexborNode):
            return self._said_by((node,), attributes)
        if hasattr(type(node), "attrib"):
            return _said_by_selector(node, attributes)
        raise not_a_target(method, node)

    def _said_by(self, nodes: Iterable[LexborNode], attributes: tuple[str, ...]) -> list[str]:
        first = attributes[0]
        said = []
        for node in nodes:
            href = node.attributes.get(first)
            if href is None or href[:5] == "data:":
                href = self._second_choice(node, attributes)
            if href is not None:
                said.append(href)
        return said

    def _second_choice(self, node: LexborNode, attributes: tuple[str, ...]) -> str | None:
        """The first of the attributes that says something; placeholders (`data:`) only if nothing else does."""
        said = [value for name in attributes if (value := _attribute(node, name)) is not None]
        if not said:
            self.refused.append((f"<{node.tag}>", f"it has no {' or '.join(attributes)}"))
        return next((value for value in said if value and value[:5] != "data:"), said[0] if said else None)

    def _address_of_links(self) -> str:
        """What relative links are relative to: <base href>, if the page is HTML and has a usable one."""
        # Without a redirect this is the request's own, which may be known to be normalised.
        address = self.request.url if self.request.url == self.url else self.url
        if "html" not in self.headers.get("Content-Type", "html"):
            return address
        declared = self._parsed().css_first("base[href]")
        if declared is None:
            return address
        try:
            return NormalURL(Resolver(address).join(_attribute(declared, "href") or ""))
        except BadURL:
            return address

    # Decoding and parsing

    def _parsed(self) -> LexborHTMLParser:
        if self._tree is None:
            html = self.body.removeprefix(_UTF8_MARK) if self._is_utf8() else self.html
            self._tree = parse_html(html)
        return self._tree

    def _is_utf8(self) -> bool:
        """Whether the body can be read as UTF-8 without asking further: it is, and nothing says otherwise."""
        kind = self.headers.get("Content-Type", "").lower()
        if "charset" in kind:
            said = "utf-8" in kind
        elif self.body[:3] == _UTF8_MARK:
            said = True
        else:
            head = self.body[:4096].lower()
            declared = _DECLARED(head) if b"charset" in head or b"<?xml" in head else None
            said = declared is None or declared[1] == b"utf-8"
        return said and _decodes(self.body)


def _decodes(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _attribute(node: LexborNode, name: str) -> str | None:
    attributes = node.attributes
    value = attributes.get(name)
    return "" if value is None and name in attributes else value


def _said_by_selector(selector: Any, attributes: tuple[str, ...]) -> list[str]:
    """What a parsel selector points at: itself if it is text (`//a/@href`), else the first of the attributes."""
    if isinstance(selector.root, str):
        return [selector.root]
    return [selector.attrib[name] for name in attributes if name in selector.attrib][:1]


def _bad_selector(selector: object) -> BadScraper:
    hint = ""
    if isinstance(selector, str):
        if "::text" in selector:
            hint = f" For the text, ask page.text({selector.replace('::text', '')!r})."
        elif "::attr" in selector:
            hint = " For an attribute, ask page.attr(selector, name)."
        elif selector.startswith(("/", "(")):
            hint = " For XPath, ask page.xpath(…)."
    return BadScraper(f"{selector!r} is not a valid CSS selector.{hint}")


def _files(urls: list[str], name: str | None, group: str | None) -> list[Request]:
    data = None if name is None else {"name": name}
    return [Request(NormalURL(url), data=data, group=group, lane="files", kind=Kind.FILE) for url in urls]

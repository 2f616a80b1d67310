"""The page that a handler is given: one HTTP answer, parsed when it is first looked into."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import msgspec
from multidict import CIMultiDict
from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from shoal.api.allow import Allowed, url_filter
from shoal.api.reading.forms import submit
from shoal.api.reading.json_reading import json_text, search_json
from shoal.api.reading.links import DOWNLOADED, FOLLOWED, References
from shoal.api.reading.pseudo_elements import attribute
from shoal.api.reading.selecting import Element, Selecting, bad_selector, select_nodes
from shoal.api.reading.targets import check_is_selector, given_urls
from shoal.api.request import Request, RequestOptions, TaskOptions
from shoal.core.html.bounds import check_bounds, parse_html
from shoal.core.task import Hop, Kind
from shoal.core.url import NormalURL, Resolver
from shoal.errors import BadScraper, BadURL

if TYPE_CHECKING:
    from parsel import Selector, SelectorList

    Node = LexborNode | Element | Selector
    Target = str | Node | Iterable[Node]
    Allowing = Allowed | Iterable[Allowed] | None

_UTF8_MARK = b"\xef\xbb\xbf"
_DECLARED = re.compile(rb"""<(?:meta\b[^>]*?\bcharset|\?xml\b[^>]*?\bencoding)\s*=\s*["']?\s*([a-z0-9_-]+)""").search


class Page(Selecting):
    """One answer, as a handler sees it. Nothing is decoded or parsed before it is asked for.

    `url` is where the answer came from (after redirects), `depth` the number of links from the start (0 = start).
    `data` and `group` are those of the `request` that led here. `headers` ignores case.
    `refused` collects (href, reason) of links that `follow`, `links` and `download` met and that cannot be fetched.
    `unchanged`: True when the page says what it said at the scraper's last visit, in this run or any before; known
    where the scraper has `cache`, `every`, `changes` or `volatile`, or the request `every`.
    `history`: the redirects that led here, each with `url`, `status` and `headers`; empty where a kept answer is used.
    """

    __slots__ = (
        "_encoding", "_resolver", "_selector", "_text", "_tree",
        "body", "data", "depth", "group", "headers", "history", "refused", "request", "status", "unchanged", "url",
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
        history: Sequence[Hop] = (),
    ) -> None:
        self.url = url
        self.body = body
        self.status = status
        self.headers: Mapping[str, str] = CIMultiDict() if headers is None else headers
        self.request = Request(url) if request is None else request
        self.data: Any = self.request.data
        self.group = self.request.group
        self.depth = depth
        self.history = tuple(Hop(hop.url, hop.status, CIMultiDict(hop.headers)) for hop in history) if history else ()
        self.unchanged = False
        self.refused: list[tuple[str, str]] = []
        self._text: str | None = None
        self._encoding = "utf-8"
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
                from shoal.core.charsets.decoding import decode_as  # noqa: PLC0415 - seldom needed

                self._text, self._encoding = decode_as(self.body, self.headers)
        return self._text

    @property
    def encoding(self) -> str:
        """The charset that the body is read in, as Python calls it."""
        return self._encoding if self.html is not None else ""

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

    def json(self, path: str | None = None) -> Any:
        """The body as JSON; `path`: what is there in it, as `"a.b[*].c"` (JMESPath), None if nothing is.

        Raises ValueError with the start of the body if it is something else.
        """
        try:
            value = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            value = json_text(self.html, self.url)  # knows NaN and lone surrogates, which the fast decoder refuses
        return search_json(value, path)

    # Going on from here

    def follow(
        self,
        what: Target,
        to: str | None = None,
        *,
        allow: Allowing = None,
        deny: Allowing = None,
        **options: Unpack[RequestOptions],
    ) -> list[Request]:
        """Requests for what `what` points at, each address once, to be read by the handler `to` (None = the default).

        `what`: a CSS selector, a node (of `css`, `select` or `xpath`), or an iterable of nodes. A selector that ends
        with `::attr(data-url)` says where the address stands. For URLs there is `follow_url`; what looks like one here
        is a BadScraper.
        Links that lead nowhere by intent (`#top`, `javascript:`, `mailto:`, …) are passed over; broken ones are noted
        in `refused`. `allow`, `deny`: of these, only those within or not within, as for the scraper.
        `options`: those of Request: data, group, priority, lane, ttl, dedup, every, method, headers, body, json, form,
        cookies, timeout, accept, redirects. `group` None = that of this page.
        """
        return self._requests(self._said_by_target("follow", what, FOLLOWED), to, allow, deny, options)

    def follow_url(
        self,
        url: str | Iterable[str],
        to: str | None = None,
        *,
        allow: Allowing = None,
        deny: Allowing = None,
        **options: Unpack[RequestOptions],
    ) -> list[Request]:
        """Requests for a URL or an iterable of URLs, which may be relative to this page; otherwise as `follow`.

        A text that looks like a selector or XPath is a BadScraper; inside an iterable every text is a URL.
        """
        return self._requests(given_urls("follow_url", url), to, allow, deny, options)

    def form(
        self,
        selector: str | None = None,
        values: Mapping[str, Any] | None = None,
        *,
        button: str | Literal[False] | None = None,
        to: str | None = None,
        **options: Unpack[TaskOptions],
    ) -> Request:
        """A request that submits a form of this page, with its own fields, as a browser would.

        `selector`: of the form, or of something in it (None = the only one, or the only one that has the fields of
        `values`). `values`: what to fill in, by name: a text or number, a list, a FormFile, True (a box is checked) or
        False and None (not sent); fields that the form does not have are added. `button`: a selector of the one that is
        pressed (None = the first, as by the Enter key; False = none). `options`: as in `follow`, without what the
        form says itself.
        Raises ValueError if there is no such form or button.
        """
        sent = submit(self, self._resolving(), selector, values or {}, button)
        headers = {**(options.get("headers") or {}), **(sent.headers or {})}
        request = Request(NormalURL(sent.url), to, **options)
        return msgspec.structs.replace(request, method=sent.method, body=sent.body, headers=headers or None)

    def download(self, what: Target, *, name: str | None = None, group: str | None = None) -> list[Request]:
        """Requests that store files: what `what` (as in `follow`) points at by `src`, `href` or `data-src`.

        `name`: what to call the file; None = after its URL. It travels as `data["name"]` of the request.
        """
        return _files(self._resolved(self._said_by_target("download", what, DOWNLOADED)), name, group)

    def download_url(
        self, url: str | Iterable[str], *, name: str | None = None, group: str | None = None
    ) -> list[Request]:
        """Requests that store the files at a URL or an iterable of URLs, as `download` does."""
        return _files(self._resolved(given_urls("download_url", url)), name, group)

    def links(self, selector: str = "a[href]") -> list[str]:
        """The absolute, normalised URLs that the matching elements point at, each once, in document order."""
        return self._resolved(self._said_by_target("links", selector, FOLLOWED))

    def url_for(self, href: str | None) -> str | None:
        """The absolute, normalised URL of a reference on this page; None = it is None, or nothing that can be fetched
        (broken, `mailto:`, …)."""
        try:
            return None if href is None else str(self._resolving().join(href))
        except BadURL:
            return None

    def _requests(
        self, references: Iterable[str], to: str | None, allow: Allowing, deny: Allowing, options: RequestOptions
    ) -> list[Request]:
        urls = self._resolved(references)
        if allow is not None or deny is not None:
            wanted = url_filter(allow, deny)
            urls = [url for url in urls if wanted(url)]
        if options:
            return [Request(NormalURL(url), to, **options) for url in urls]
        return [Request(NormalURL(url), to) for url in urls]

    def _resolving(self) -> Resolver:
        if self._resolver is None:
            self._resolver = Resolver(self._address_of_links())
        return self._resolver

    def _resolved(self, references: Iterable[str]) -> list[str]:
        found, broken = self._resolving().join_all(references)
        self.refused += broken
        return found

    def _said_by_target(self, method: str, what: Target, attributes: tuple[str, ...]) -> Iterable[str]:
        """What is written in the links, before it is resolved."""
        references = References(method, attributes, self.refused)
        if not isinstance(what, str):
            return references.of(what)
        check_is_selector(method, what)
        return self.css(what) if "::" in what else references.of_nodes(self._nodes(what))

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
            return NormalURL(Resolver(address).join(attribute(declared, "href") or ""))
        except BadURL:
            return address

    # Decoding and parsing

    def _root(self) -> LexborNode:
        root = self._parsed().root
        assert root is not None  # noqa: S101 - the parser makes one for every text
        return root

    def _page_of_it(self) -> Page:
        return self

    def _nodes(self, selector: str) -> list[LexborNode]:
        return select_nodes(self._parsed(), selector)

    def _node(self, selector: str) -> LexborNode | None:
        try:
            return self._parsed().css_first(selector)
        except (SelectolaxError, TypeError, UnicodeEncodeError) as error:
            raise bad_selector(selector) from error

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


def _files(urls: list[str], name: str | None, group: str | None) -> list[Request]:
    data = None if name is None else {"name": name}
    return [Request(NormalURL(url), data=data, group=group, lane="files", kind=Kind.FILE) for url in urls]

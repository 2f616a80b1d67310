"""Selecting from a page, or from one of its elements: CSS, texts, attributes, patterns, structured data, tables."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from selectolax.lexbor import LexborNode, SelectolaxError

from shoal.api.reading.json_reading import json_text, search_json
from shoal.api.reading.microdata import read_microdata
from shoal.api.reading.pseudo_elements import attribute, pseudo_element
from shoal.api.reading.structured_data import JSONLD, OPENGRAPH, read_jsonld, read_opengraph
from shoal.api.reading.tables import Table, read_tables
from shoal.errors import BadScraper

if TYPE_CHECKING:
    from shoal.api.page import Page

Pattern = str | re.Pattern[str]

LONGEST_TEXT = 1_000_000
"""Characters of a text that a pattern is held against; what is behind them is not looked at."""

MOST_MATCHES = 100_000
"""So many matches of a pattern are given at most."""


class Matches(list[Any]):
    """What a selector found: nodes, or texts where it ends with `::text` or `::attr(name)`. A list, and besides:"""

    __slots__ = ()

    def re(self, pattern: Pattern) -> list[str]:
        """What a regular expression finds in the text of each, in order: its groups, or all of it if it has none.

        Of each text the first million characters are looked at. A pattern whose time explodes is not stopped by that:
        write none with a repetition inside of a repetition, as `(a+)+`.
        """
        return self._found(pattern, MOST_MATCHES)

    def re_first(self, pattern: Pattern) -> str | None:
        """The first of what `re` finds; None if that is nothing."""
        return next(iter(self._found(pattern, 1)), None)

    def _found(self, pattern: Pattern, most: int) -> list[str]:
        try:
            compiled = re.compile(pattern)
        except (re.error, TypeError) as error:
            raise BadScraper(f"{pattern!r} is not a valid regular expression: {error}.") from None
        found: list[str] = []
        for each in self:
            text = each if isinstance(each, str) else each.text()
            for match in compiled.finditer(text[:LONGEST_TEXT]):
                found += [group or "" for group in match.groups()] or [match[0]]
                if len(found) >= most:
                    return found
        return found


class Selecting:
    """What can be asked of a page and of its elements alike."""

    __slots__ = ()

    def css(self, selector: str) -> Matches:
        """All elements that match, in document order, as selectolax nodes.

        Where the selector ends with `::text` or `::attr(name)`: the texts directly in them (`div ::text`: also those
        further down), or this attribute of those that have it, as they stand. The list has `re` and `re_first` as well.
        """
        wanted = pseudo_element(selector) if isinstance(selector, str) and "::" in selector else None
        if wanted is None:
            return Matches(self._nodes(selector))
        return Matches(wanted.of(self._nodes(wanted.selector) if wanted.selector else [self._root()]))

    def css_first(self, selector: str) -> Any:
        """The first element that matches, or the first text of `::text` and `::attr(name)`; None if there is none."""
        if isinstance(selector, str) and "::" in selector:
            return next(iter(self.css(selector)), None)
        return self._node(selector)

    def select(self, selector: str) -> list[Element]:
        """All elements that match, as Elements, which can be asked what a page can: `card.text("h3")`."""
        page = self._page_of_it()
        return [Element(node, page) for node in self._nodes(selector)]

    def select_first(self, selector: str) -> Element | None:
        """The first element that matches, as an Element; None if nothing matches."""
        node = self._node(selector)
        return None if node is None else Element(node, self._page_of_it())

    def text(self, selector: str) -> str | None:
        """The stripped text of the first match; None if nothing matches. For the source of the page, ask `html`."""
        found = self.css_first(selector)
        return None if found is None else (found if isinstance(found, str) else found.text()).strip()

    def texts(self, selector: str) -> Matches:
        """The stripped text of each match, "" for one without text. The list has `re` and `re_first` as well."""
        return Matches([(found if isinstance(found, str) else found.text()).strip() for found in self.css(selector)])

    def attr(self, selector: str, name: str) -> str | None:
        """An attribute of the first match; None if nothing matches or it has no such attribute, "" if it is empty."""
        node = self._node(selector)
        return None if node is None else attribute(node, name)

    def attrs(self, selector: str, name: str) -> Matches:
        """An attribute of each match that has it, "" if it is empty. The list has `re` and `re_first` as well."""
        return Matches([said for node in self._nodes(selector) if (said := attribute(node, name)) is not None])

    def jsonld(self, of_type: str | None = None) -> list[dict[str, Any]]:
        """The objects of JSON-LD, those of an `@graph` one by one; `of_type`: only those, as `"Product"`.

        Scripts that are broken are passed over. At most 1,000 objects.
        """
        return read_jsonld((node.text() for node in self._nodes(JSONLD)), of_type)

    def microdata(self, of_type: str | None = None) -> list[dict[str, Any]]:
        """The items of microdata, as the HTML standard writes them in JSON: `{"type": […], "properties": {name: […]}}`.

        `of_type`: only those, as `"Product"`. URLs are absolute. Items in items are 20 deep at most.
        """
        page = self._page_of_it()
        scopes = self._nodes("[itemscope]:not([itemprop])")
        return read_microdata(scopes, page.url_for, partial(page.css, "[id]"), of_type)

    def opengraph(self) -> dict[str, list[str]]:
        """What the page says in `<meta>` for those who link to it: `{"og:title": ["…"], …}`; `twitter:…` as well."""
        return read_opengraph(self._nodes(OPENGRAPH))

    def tables(self, selector: str = "table") -> list[Table]:
        """The tables that match, with cells that span several in each of their places. At most 100,000 cells in all."""
        return read_tables(self._nodes(selector))

    # What those who can be asked have to say

    def _root(self) -> LexborNode:
        raise NotImplementedError

    def _page_of_it(self) -> Page:
        raise NotImplementedError

    def _nodes(self, selector: str) -> list[LexborNode]:
        raise NotImplementedError

    def _node(self, selector: str) -> LexborNode | None:
        raise NotImplementedError


class Element(Selecting):
    """One element of a page, which is asked like the page itself: `css`, `text`, `texts`, `attr`, `attrs`, `select`,
    `jsonld`, `microdata`, `opengraph`, `tables`. What is selected is inside of it.

    `node`: the selectolax node.
    """

    __slots__ = ("_page", "node")

    def __init__(self, node: LexborNode, page: Page) -> None:
        self.node = node
        self._page = page

    def __repr__(self) -> str:
        return f"<Element {self.node.tag} of {self._page.url}>"

    @property
    def html(self) -> str:
        """Its source, with its own tags."""
        return self.node.html or ""

    @property
    def attributes(self) -> dict[str, str]:
        """Its own attributes; "" for those without a value."""
        return {name: value or "" for name, value in self.node.attributes.items()}

    def text(self, selector: str | None = None) -> str | None:
        """The stripped text of the first match in it, None if there is none; without a selector, its own."""
        return self.node.text().strip() if selector is None else super().text(selector)

    def json(self, path: str | None = None) -> Any:
        """The JSON that is its text, as in `<script type="application/json">`; `path`: as in `page.json`."""
        return search_json(json_text(self.node.text(), f"<{self.node.tag}> of {self._page.url}"), path)

    def _root(self) -> LexborNode:
        return self.node

    def _page_of_it(self) -> Page:
        return self._page

    def _nodes(self, selector: str) -> list[LexborNode]:
        own = self.node.mem_id
        return [node for node in select_nodes(self.node, selector) if node.mem_id != own]

    def _node(self, selector: str) -> LexborNode | None:
        return next(iter(self._nodes(selector)), None)


def select_nodes(root: Any, selector: str) -> list[LexborNode]:
    """All elements below `root` that match. Raises BadScraper for what is no CSS selector."""
    try:
        found: list[LexborNode] = root.css(selector)
    except (SelectolaxError, TypeError, UnicodeEncodeError) as error:
        raise bad_selector(selector) from error
    return found


def bad_selector(selector: object) -> BadScraper:
    """The complaint about what is no CSS selector, with what may have been meant."""
    hint = ""
    if isinstance(selector, str):
        if "::text" in selector or "::attr" in selector:
            hint = " ::text and ::attr(name) stand at its end, and css, css_first, text, texts and follow take them."
        elif selector.startswith(("/", "(")):
            hint = " For XPath, ask page.xpath(…)."
    return BadScraper(f"{selector!r} is not a valid CSS selector.{hint}")

"""Microdata, as the HTML standard defines it: items with types and properties, written into the markup itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from selectolax.lexbor import LexborNode

from shoal.api.reading.pseudo_elements import attribute
from shoal.api.reading.structured_data import has_type

MOST_DEPTH = 20
"""Items inside of items; deeper ones are left out."""

MOST_ELEMENTS = 100_000
"""Elements that are looked at for one page: `itemref` can lead to the same ones again and again."""

_ADDRESS = {
    **dict.fromkeys(("a", "area", "link"), "href"),
    **dict.fromkeys(("audio", "embed", "iframe", "img", "source", "track", "video"), "src"),
    "object": "data",
}
_SAID = {"meta": "content", "data": "value", "meter": "value"}

UrlFor = Callable[[str], str | None]
AllWithId = Callable[[], Iterable[LexborNode]]


def read_microdata(
    scopes: Iterable[LexborNode], url_for: UrlFor, all_with_id: AllWithId, of_type: str | None
) -> list[dict[str, Any]]:
    """The items of these elements; `of_type`: only those of the type."""
    reading = _Reading(url_for, all_with_id)
    items = [reading.item(scope, frozenset()) for scope in scopes]
    return [item for item in items if of_type is None or has_type(item.get("type"), of_type)]


class _Reading:
    def __init__(self, url_for: UrlFor, all_with_id: AllWithId) -> None:
        self._url_for = url_for
        self._all_with_id = all_with_id
        self._by_id: dict[str, LexborNode] | None = None
        self._left = MOST_ELEMENTS

    def item(self, scope: LexborNode, above: frozenset[int]) -> dict[str, Any]:
        """One item. `above`: the items that it is in, which it cannot contain in turn."""
        item: dict[str, Any] = {}
        types = (attribute(scope, "itemtype") or "").split()
        if types:
            item["type"] = types
        if itemid := (attribute(scope, "itemid") or "").strip():
            item["id"] = self._url_for(itemid) or itemid
        properties: dict[str, list[Any]] = {}
        inside = above | {scope.mem_id}
        for node in self._holders(scope):
            if "itemscope" not in node.attributes:
                value: Any = self._value(node)
            elif node.mem_id in inside or len(inside) >= MOST_DEPTH:
                continue
            else:
                value = self.item(node, inside)
            for name in dict.fromkeys((attribute(node, "itemprop") or "").split()):
                properties.setdefault(name, []).append(value)
        item["properties"] = properties
        return item

    def _holders(self, scope: LexborNode) -> Iterator[LexborNode]:
        """The elements that hold properties of an item: below it, or below what its `itemref` names."""
        seen = {scope.mem_id}
        ways: list[Iterator[LexborNode]] = [self._referred(scope), scope.iter()]
        while ways:
            node = next(ways[-1], None)
            if node is None:
                ways.pop()
            elif self._left and node.mem_id not in seen:
                self._left -= 1
                seen.add(node.mem_id)
                if "itemprop" in node.attributes:
                    yield node
                if "itemscope" not in node.attributes:
                    ways.append(node.iter())

    def _referred(self, scope: LexborNode) -> Iterator[LexborNode]:
        names = (attribute(scope, "itemref") or "").split()
        if names and self._by_id is None:
            self._by_id = {attribute(node, "id") or "": node for node in reversed(list(self._all_with_id()))}
        return iter([self._by_id[name] for name in names if name in self._by_id] if self._by_id else [])

    def _value(self, node: LexborNode) -> str:
        tag = node.tag or ""
        if tag in _ADDRESS:
            href = attribute(node, _ADDRESS[tag]) or ""
            return self._url_for(href) or href
        if tag in _SAID:
            return attribute(node, _SAID[tag]) or ""
        said = attribute(node, "datetime") if tag == "time" else None
        return node.text().strip() if said is None else said

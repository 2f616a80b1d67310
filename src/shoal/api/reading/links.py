"""What the links of a page say: references in attributes of nodes, before they are resolved."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from selectolax.lexbor import LexborNode

from shoal.api.reading.pseudo_elements import attribute
from shoal.api.reading.selecting import Element
from shoal.api.reading.targets import not_a_target

FOLLOWED = ("href", "src")
DOWNLOADED = ("src", "href", "data-src")


class References:
    """Reads the attributes that say where nodes point. `refused`: gets (tag, reason) of those that say nothing."""

    __slots__ = ("_attributes", "_method", "_refused")

    def __init__(self, method: str, attributes: tuple[str, ...], refused: list[tuple[str, str]]) -> None:
        self._method = method
        self._attributes = attributes
        self._refused = refused

    def of(self, what: Any) -> Iterable[str]:
        """The references of a node, an Element, a parsel selector, or an iterable of these; BadScraper for all else."""
        if isinstance(what, LexborNode | Element) or _is_parsel(what):
            return self._of_one(what)
        if isinstance(what, Iterable) and not isinstance(what, str):
            return chain.from_iterable(map(self._of_one, what))
        raise not_a_target(self._method, what)

    def of_nodes(self, nodes: Iterable[LexborNode]) -> list[str]:
        """The references of selectolax nodes."""
        first = self._attributes[0]
        said = []
        for node in nodes:
            href = node.attributes.get(first)
            if href is None or href[:5] == "data:":
                href = self._second_choice(node)
            if href is not None:
                said.append(href)
        return said

    def _of_one(self, node: Any) -> list[str]:
        if isinstance(node, Element):
            node = node.node
        if isinstance(node, LexborNode):
            return self.of_nodes((node,))
        if _is_parsel(node):
            if isinstance(node.root, str):  # `//a/@href` is the reference itself
                return [node.root]
            return [node.attrib[name] for name in self._attributes if name in node.attrib][:1]
        raise not_a_target(self._method, node)

    def _second_choice(self, node: LexborNode) -> str | None:
        """The first of the attributes that says something; placeholders (`data:`) only if nothing else does."""
        said = [value for name in self._attributes if (value := attribute(node, name)) is not None]
        if not said:
            self._refused.append((f"<{node.tag}>", f"it has no {' or '.join(self._attributes)}"))
        return next((value for value in said if value and value[:5] != "data:"), said[0] if said else None)


def _is_parsel(what: object) -> bool:
    return hasattr(type(what), "attrib") and not isinstance(what, list)

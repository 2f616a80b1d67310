"""Which control belongs to which form: by `form=`, by what it is in, and whether it is disabled there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from shoal.api.reading.pseudo_elements import attribute

_TABLE_PARTS = frozenset({"table", "thead", "tbody", "tfoot", "tr"})
_BUTTONS = frozenset({"submit", "image"})


class _Surroundings(NamedTuple):
    """What the elements around a node make of it."""

    form: LexborNode | None
    is_off: bool


_NOTHING = _Surroundings(None, is_off=False)


class FormOwners:
    """The forms of a page, each with its controls in document order, those that are disabled left out.

    A `<form>` between the parts of a table is closed at once by every parser, and yet owns what follows it. Where it
    ends cannot be seen any more, so that it is given all that follows and is in no other form.
    """

    def __init__(self, nodes: Iterable[LexborNode]) -> None:
        self._around: dict[int, _Surroundings] = {}
        self._first_legends: dict[int, int | None] = {}
        self.forms: list[LexborNode] = []
        self._controls: dict[int, list[LexborNode]] = {}
        ids: dict[str, LexborNode] = {}
        listed = list(nodes)
        for node in listed:
            if node.tag == "form":
                self.forms.append(node)
                self._controls[node.mem_id] = []
                if name := attribute(node, "id"):
                    ids.setdefault(name, node)
        hollow: LexborNode | None = None
        for node in listed:
            if node.tag == "form":
                hollow = node if _is_hollow(node) else hollow
                continue
            form, is_off = self._surroundings(node)
            named = attribute(node, "form")
            owner = ids.get(named) if named is not None else form or hollow
            if owner is not None and not is_off and "disabled" not in node.attributes:
                self._controls[owner.mem_id].append(node)

    def controls(self, form: LexborNode) -> list[LexborNode]:
        """All that is not disabled, buttons included."""
        return self._controls[form.mem_id]

    def buttons(self, form: LexborNode) -> list[LexborNode]:
        """Those that submit it."""
        return [node for node in self.controls(form) if _submits(node)]

    def names(self, form: LexborNode) -> set[str]:
        """The names of its fields."""
        return {attribute(node, "name") or "" for node in self.controls(form)}

    def form_of(self, node: LexborNode) -> LexborNode | None:
        """The form that an element is, or that it is in."""
        return node if node.tag == "form" else self._surroundings(node).form

    def _surroundings(self, node: LexborNode) -> _Surroundings:
        """By way of what is known of the elements above it, so that deep pages cost no more than long ones."""
        way = [node]
        while (above := way[-1].parent) is not None and way[-1].mem_id not in self._around:
            way.append(above)
        around = self._around.get(way[-1].mem_id, _NOTHING)
        for parent, child in zip(reversed(way), list(reversed(way))[1:], strict=False):
            form = parent if parent.tag == "form" else around.form
            is_off = around.is_off or parent.tag == "datalist" or self._turns_off(parent, child)
            around = self._around[child.mem_id] = _Surroundings(form, is_off)
        return around

    def _turns_off(self, parent: LexborNode, child: LexborNode) -> bool:
        """A disabled fieldset disables what is in it, except in its first legend."""
        if parent.tag != "fieldset" or "disabled" not in parent.attributes:
            return False
        if parent.mem_id not in self._first_legends:
            legends = (node.mem_id for node in parent.iter() if node.tag == "legend")
            self._first_legends[parent.mem_id] = next(legends, None)
        return child.mem_id != self._first_legends[parent.mem_id]


def _submits(node: LexborNode) -> bool:
    kind = (attribute(node, "type") or "").strip().lower()
    return kind not in ("button", "reset") if node.tag == "button" else node.tag == "input" and kind in _BUTTONS


def _is_hollow(form: LexborNode) -> bool:
    parent = form.parent
    return parent is not None and parent.tag in _TABLE_PARTS and next(form.iter(), None) is None

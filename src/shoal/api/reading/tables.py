"""Tables of HTML as rows of texts; cells that span several rows or columns stand in each of their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from shoal.api.reading.pseudo_elements import attribute

MOST_CELLS = 100_000
"""Cells of one page, spans counted: `<td colspan=1000 rowspan=65534>` is short to write."""

_WIDEST, _TALLEST = 1000, 65534  # as in the HTML standard


class Table(NamedTuple):
    """One table. `header`: the names of its columns, from a first row in `<thead>` or of `<th>` alone; else empty."""

    caption: str | None
    header: list[str]
    rows: list[list[str]]

    @property
    def records(self) -> list[dict[str, str]]:
        """Each row by the names of the columns; a table without header has none."""
        return [dict(zip(self.header, row, strict=False)) for row in self.rows] if self.header else []


def read_tables(nodes: Iterable[LexborNode]) -> list[Table]:
    """The tables that these elements are; all else is passed over."""
    left = MOST_CELLS
    tables = []
    for node in nodes:
        if node.tag != "table" or not left:
            continue
        table, used = _read(node, left)
        left -= used
        tables.append(table)
    return tables


def _read(table: LexborNode, most: int) -> tuple[Table, int]:
    caption = next((child.text().strip() for child in table.iter() if child.tag == "caption"), None)
    header: list[str] = []
    rows: list[list[str]] = []
    used = 0
    for group in _row_groups(table):
        spans: dict[int, tuple[int, str]] = {}
        for row in group:
            cells = [cell for cell in row.iter() if cell.tag in ("td", "th")]
            texts = _laid_out(cells, spans, most - used)
            used += len(texts)
            in_head = row.parent is not None and row.parent.tag == "thead"
            if not rows and not header and cells and (in_head or all(cell.tag == "th" for cell in cells)):
                header = texts
            elif texts and not in_head:
                rows.append(texts)
            if used >= most:
                return Table(caption, header, rows), most
    return Table(caption, header, rows), used


def _row_groups(table: LexborNode) -> Iterator[list[LexborNode]]:
    """Rows that cells may span: those of each `<thead>`, `<tbody>` and `<tfoot>`."""
    for child in table.iter():
        if child.tag == "tr":
            yield [child]
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield [row for row in child.iter() if row.tag == "tr"]


def _laid_out(cells: list[LexborNode], spans: dict[int, tuple[int, str]], most: int) -> list[str]:
    """The texts of one row. `spans`: by column, for how many rows a cell from above reaches down, and its text."""
    texts: list[str] = []

    def reach_down() -> None:
        while len(texts) in spans and len(texts) < most:
            column = len(texts)
            rows, text = spans.pop(column)
            texts.append(text)
            if rows > 1:
                below[column] = (rows - 1, text)

    below: dict[int, tuple[int, str]] = {}
    for cell in cells:
        reach_down()
        text = cell.text().strip()
        tall = _span(cell, "rowspan", _TALLEST)
        for _ in range(min(_span(cell, "colspan", _WIDEST), most - len(texts))):
            if tall > 1:
                below[len(texts)] = (tall - 1, text)
            texts.append(text)
    reach_down()
    spans.clear()
    spans.update(below)
    return texts


def _span(cell: LexborNode, name: str, most: int) -> int:
    """How far a cell reaches; `rowspan=0` is to the end."""
    said = (attribute(cell, name) or "1").strip()
    if not (said.isascii() and said.isdigit()) or len(said) > 9:
        return 1
    return min(int(said) or (most if name == "rowspan" else 1), most)

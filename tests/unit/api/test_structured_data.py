"""Structured data of pages: JSON-LD, microdata, OpenGraph, tables; and that strangers cannot make them expensive."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shoal import Page
from shoal.api.reading.microdata import MOST_DEPTH
from shoal.api.reading.structured_data import MOST_OBJECTS
from shoal.api.reading.tables import MOST_CELLS


def page(html: str) -> Page:
    return Page.from_html(html, "https://x.example/dir/")


def ld(*values: Any) -> Page:
    scripts = (each if isinstance(each, str) else json.dumps(each) for each in values)
    return page("".join(f'<script type="application/ld+json">{script}</script>' for script in scripts))


class TestJsonLd:
    def test_objects_of_all_scripts_of_lists_and_of_graphs_in_order(self) -> None:
        found = ld({"@type": "A"}, [{"@type": "B"}, {"@type": "C"}], {"@graph": [{"@type": "D"}, {"x": 1}]}).jsonld()
        assert [each.get("@type") for each in found] == ["A", "B", "C", "D", None]

    def test_by_type_in_every_spelling(self) -> None:
        said = ld(
            {"@type": "https://schema.org/Product", "n": 1}, {"@type": ["Thing", "Product"], "n": 2}, {"@type": "X"}
        )
        assert [each["n"] for each in said.jsonld("Product")] == [1, 2]

    def test_what_pages_wrap_around_it_and_break_in_it(self) -> None:
        found = ld(
            '<!-- {"a": 1} -->', '{"a": "x\ny"};', "{broken", "", '//<![CDATA[\n{"a": 3}\n//]]>', "[1, null]"
        ).jsonld()
        assert [each["a"] for each in found] == [1, "x\ny", 3]

    def test_hostile_ones_are_bounded(self) -> None:
        assert ld("[" * 200_000).jsonld() == []
        assert len(ld([{}] * 5000, [{}] * 5000).jsonld()) == MOST_OBJECTS

    def test_of_an_element(self) -> None:
        html = f"<div>{ld({'a': 1}).html}</div>{ld({'a': 2}).html}"
        [found] = page(html).select("div")
        assert found.jsonld() == [{"a": 1}]


class TestMicrodata:
    HTML = """<div itemscope itemtype="https://schema.org/Product" itemid="#p" itemref="more gone">
      <b itemprop="name title"> Milk </b><a itemprop=url href="/milk">x</a><img itemprop=image src=m.png>
      <div itemprop=offers itemscope itemtype="https://schema.org/Offer"><meta itemprop=price content="3.5">
        <time itemprop=from datetime="2020-01-01">then</time><data itemprop=sku value=7>seven</data></div></div>
      <p id=more>by <span itemprop=brand>Cow</span></p><div itemscope><i itemprop=a>1</i></div>"""

    def test_items_as_the_standard_writes_them(self) -> None:
        [product, plain] = page(self.HTML).microdata()
        offer = {
            "type": ["https://schema.org/Offer"],
            "properties": {"price": ["3.5"], "from": ["2020-01-01"], "sku": ["7"]},
        }
        assert product == {
            "type": ["https://schema.org/Product"],
            "id": "https://x.example/dir/",
            "properties": {
                "name": ["Milk"],
                "title": ["Milk"],
                "url": ["https://x.example/milk"],
                "image": ["https://x.example/dir/m.png"],
                "offers": [offer],
                "brand": ["Cow"],
            },
        }
        assert plain == {"properties": {"a": ["1"]}}
        assert page(self.HTML).microdata("Product") == [product]

    def test_items_that_contain_each_other_end(self) -> None:
        loops = """<div itemscope itemref=a></div><div id=a itemprop=x itemscope itemref=b></div>
        <p id=b itemprop=y itemscope itemref=a></p>"""
        [found] = page(loops).microdata()
        assert found == {"properties": {"x": [{"properties": {"y": [{"properties": {}}]}}]}}

    def test_nesting_and_work_are_bounded(self) -> None:
        deep = page("<div itemscope itemprop=a>" * 100)
        [found] = page(f"<div itemscope>{deep.html}").microdata()
        depth = 0
        while found["properties"]:
            found, depth = found["properties"]["a"][0], depth + 1
        assert depth == MOST_DEPTH - 1
        names = [f"n{n}" for n in range(40)]
        storm = "".join(f'<p id={name} itemprop=x itemscope itemref="{" ".join(names)}"></p>' for name in names)
        assert len(page(f'<div itemscope itemref="{" ".join(names)}"></div>{storm}').microdata()) == 1


def test_opengraph_has_every_value_in_order_by_its_property() -> None:
    html = """<meta property="og:title" content=" Milk "><meta property=og:image content=1>
    <meta property=og:image content=2>
    <meta name="twitter:card" content=summary><meta property="Article:author" content=me><meta name=viewport content=x>
    <meta name="dc:x" content=y><meta property=og:none>"""
    assert page(html).opengraph() == {
        "og:title": ["Milk"],
        "og:image": ["1", "2"],
        "twitter:card": ["summary"],
        "article:author": ["me"],
    }


class TestTables:
    def test_header_rows_and_records(self) -> None:
        [table] = page(
            "<table><caption>Prices<tr><th>What<th>Price<tr><td>Milk<td> 3 <tr><td>Bread<td>4</table>"
        ).tables()
        assert (table.caption, table.header, table.rows) == (
            "Prices",
            ["What", "Price"],
            [["Milk", "3"], ["Bread", "4"]],
        )
        assert table.records == [{"What": "Milk", "Price": "3"}, {"What": "Bread", "Price": "4"}]

    def test_without_a_header_there_are_rows(self) -> None:
        [table] = page("<table><tr><th>a<td>1<tr><th>b<td>2</table>").tables()
        assert (table.header, table.rows, table.records) == ([], [["a", "1"], ["b", "2"]], [])

    def test_spans_stand_in_each_of_their_places(self) -> None:
        [table] = page(
            "<table><thead><tr><td>a<td colspan=2>b<tbody><tr><td rowspan=2>1<td>2<td rowspan=0>3<tr><td>4<tr><td>5"
            "<td>6<tbody><tr><td>7</table>"
        ).tables()
        assert table.header == ["a", "b", "b"]
        assert table.rows == [["1", "2", "3"], ["1", "4", "3"], ["5", "6", "3"], ["7"]]

    def test_tables_in_tables_are_their_own(self) -> None:
        tables = page("<table id=o><tr><td>out<table id=i><tr><td>in</table></table>").tables()
        assert [table.rows for table in tables] == [[["outin"]], [["in"]]]
        assert [table.rows for table in page("<div><table><tr><td>x</table></div><p>").tables("div, table, p")] == [
            [["x"]]
        ]

    def test_spans_that_are_nonsense_or_huge(self) -> None:
        assert page("<table><tr><td colspan=x rowspan=-1>a<td colspan=0>b").tables()[0].rows == [["a", "b"]]
        huge = page("<table>" + "<tr><td colspan=1000 rowspan=65534>x" * 500 + "</table>").tables()[0]
        assert sum(map(len, huge.rows)) <= MOST_CELLS

    @given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=4), max_size=6))
    @settings(max_examples=80, deadline=None)
    def test_whatever_cells_span_each_is_there(self, spans: list[list[tuple[int, int]]]) -> None:
        rows = "".join(
            "<tr>" + "".join(f"<td colspan={wide} rowspan={tall}>{r}.{c}</td>" for c, (wide, tall) in enumerate(row))
            for r, row in enumerate(spans)
        )
        tables = page(f"<table>{rows}</table>").tables()
        said = [text for table in tables for row in table.rows for text in row]
        assert {f"{r}.{c}" for r, row in enumerate(spans) for c in range(len(row))} <= set(said)

"""Round trips: what is written in each form is read back by somebody else's reader."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
import zstandard
from pyarrow import parquet  # type: ignore[import-untyped]

from shoal.frontier.contract.reader import Item
from shoal.runs.export.export import export
from shoal.runs.export.output import OutputOptions, output_for
from shoal.runs.export.survey import ItemSource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ITEMS: list[dict[str, Any]] = [
    {"title": "A <b> & \u0001", "price": 1, "tags": ["x", {"y": None}], "in stock": True},
    {"title": "B", "price": 2.5, "tags": [], "in stock": None},
]


def source_of(*bodies: object) -> ItemSource:
    async def read() -> AsyncIterator[Item]:
        for number, body in enumerate(bodies):
            yield Item(f"https://shop.example/{number}", "fruit", msgspec.Raw(json.dumps(body).encode()))

    return read


async def written(path: Path, *bodies: object, columns: tuple[str, ...] | None = None) -> bytes:
    assert await export(source_of(*bodies), output_for(str(path), OutputOptions(columns=columns)), "run") == len(bodies)
    return path.read_bytes()  # noqa: ASYNC240 - nobody else waits


async def test_json_is_one_array(tmp_path: Path) -> None:
    assert json.loads(await written(tmp_path / "a.json", *ITEMS)) == ITEMS
    assert json.loads(await written(tmp_path / "b.json")) == []


async def test_xml_has_an_element_for_each_key(tmp_path: Path) -> None:
    root = ET.fromstring(await written(tmp_path / "a.xml", *ITEMS))  # noqa: S314 - our own
    first, second = root
    assert first.findtext("title") == "A <b> & \ufffd", "what XML cannot hold is replaced"
    assert [value.text for value in first.findall("tags/value")] == ["x", None]
    assert first.find("tags/value/y[@null='true']") is not None
    assert first.findtext("field[@name='in stock']") == "true"
    assert second.findtext("price") == "2.5"
    assert second.find("field[@null='true']") is not None


async def test_parquet_has_a_type_for_each_column(tmp_path: Path) -> None:
    big = {"title": 3, "price": 7, "n": 2**70, "whole": 5}
    await written(tmp_path / "a.parquet", *ITEMS, big)
    table = parquet.read_table(tmp_path / "a.parquet")
    assert {field.name: str(field.type) for field in table.schema} == {
        "title": "string",
        "price": "double",
        "tags": "string",
        "in stock": "bool",
        "n": "string",
        "whole": "int64",
    }
    rows = table.to_pylist()
    assert rows[0] == {
        "title": "A <b> & \u0001", "price": 1.0, "tags": '["x",{"y":null}]', "in stock": True, "n": None, "whole": None,
    }  # fmt: skip
    assert (rows[2]["title"], rows[2]["n"], rows[2]["whole"]) == ("3", str(2**70), 5)


async def test_parquet_without_items_is_a_file_all_the_same(tmp_path: Path) -> None:
    await written(tmp_path / "a.parquet")
    assert parquet.read_table(tmp_path / "a.parquet").num_rows == 0


async def test_gzip_and_zstandard_hold_the_same_lines(tmp_path: Path) -> None:
    plain = await written(tmp_path / "a.jsonl", *ITEMS)
    assert gzip.decompress(await written(tmp_path / "a.jsonl.gz", *ITEMS)) == plain
    packed = await written(tmp_path / "a.jsonl.zst", *ITEMS)
    assert zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed)).read() == plain


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.xml", "a.parquet", "a.csv.gz"])
async def test_columns_are_chosen_in_order_and_may_say_where_an_item_came_from(tmp_path: Path, name: str) -> None:
    columns = ("price", "_url", "missing", "title")
    body = await written(tmp_path / name, *ITEMS, columns=columns)
    rows: list[tuple[str, ...]]
    match name.split(".")[1:]:
        case ["jsonl"]:
            rows = [tuple(json.loads(line)) for line in body.splitlines()]
        case ["json"]:
            rows = [tuple(item) for item in json.loads(body)]
        case ["xml"]:
            rows = [tuple(field.tag for field in item) for item in ET.fromstring(body)]  # noqa: S314 - our own
        case ["parquet"]:
            rows = [tuple(row) for row in parquet.read_table(tmp_path / name).to_pylist()]
        case ["csv", *rest]:
            text = (gzip.decompress(body) if rest else body).decode()
            table = list(csv.DictReader(io.StringIO(text)))
            rows = [tuple(row) for row in table]
            assert table[1]["_url"] == "https://shop.example/1"
    assert rows == [columns, columns]

"""Export: whole files or none, the same items in every format."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from shoal.errors import UsageError
from shoal.frontier.contract.reader import Item, ItemPage, Reader
from shoal.runs.export import Format, ItemSource, Output, export, items_of, output_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def source_of(*bodies: object) -> ItemSource:
    async def read() -> AsyncIterator[Item]:
        for body in bodies:
            yield Item("https://shop.example/", None, msgspec.Raw(json.dumps(body).encode()))

    return read


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_jsonl_is_one_object_per_line_as_yielded(tmp_path: Path) -> None:
    target = tmp_path / "books.jsonl"
    records = [{"title": "Ünï\ncode", "price": 1.5}, {"tags": ["a", {"b": None}]}]
    assert await export(source_of(*records), output_for(str(target))) == 2
    lines = target.read_bytes().splitlines()
    assert [json.loads(line) for line in lines] == records


async def test_an_item_stored_over_several_lines_still_takes_one(tmp_path: Path) -> None:
    async def read() -> AsyncIterator[Item]:
        yield Item("https://shop.example/", None, msgspec.Raw(b'{\n "a": 1\n}'))

    target = tmp_path / "a.jsonl"
    await export(read, output_for(str(target)))
    assert target.read_bytes() == b'{"a":1}\n'


async def test_csv_has_a_column_for_every_key_of_any_item(tmp_path: Path) -> None:
    target = tmp_path / "books.CSV"
    records = [
        {"title": 'Say "hi", twice\nplease', "price": 1.5},
        {"title": None, "tags": ["a", 1], "ok": True},
        {"price": 12345678901234567890, "formula": "=1+1"},
    ]
    assert await export(source_of(*records), output_for(str(target))) == 3
    with target.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["title", "price", "tags", "ok", "formula"]
    assert rows[0]["title"] == 'Say "hi", twice\nplease'
    assert rows[1] == {"title": "", "price": "", "tags": '["a",1]', "ok": "true", "formula": ""}
    assert rows[2]["price"] == "12345678901234567890"
    assert rows[2]["formula"] == "=1+1", "data stays data"


async def test_csv_leaves_out_what_came_after_its_columns_were_counted(tmp_path: Path) -> None:
    records: list[object] = [{"a": 1}]

    async def read() -> AsyncIterator[Item]:
        for body in tuple(records):
            yield Item("https://shop.example/", None, msgspec.Raw(json.dumps(body).encode()))
        records.append({"b": 2})

    target = tmp_path / "a.csv"
    assert await export(read, output_for(str(target))) == 1
    assert target.read_text() == "a\n1\n"


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
async def test_nothing_to_export_is_an_empty_file(tmp_path: Path, name: str) -> None:
    assert await export(source_of(), output_for(str(tmp_path / name))) == 0
    assert (tmp_path / name).read_bytes() == b""


async def test_a_failed_export_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    target = tmp_path / "a.jsonl"
    target.write_text("old\n")

    async def read() -> AsyncIterator[Item]:
        yield Item("https://shop.example/", None, msgspec.Raw(b"{}"))
        raise RuntimeError("the store went away")

    with pytest.raises(RuntimeError):
        await export(read, output_for(str(target)))
    assert target.read_text() == "old\n"
    assert names_in(tmp_path) == ["a.jsonl"]


async def test_the_file_appears_only_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "a.jsonl"
    seen: list[bool] = []

    async def read() -> AsyncIterator[Item]:
        for _ in range(3):
            seen.append(target.exists())
            yield Item("https://shop.example/", None, msgspec.Raw(b"{}"))

    await export(read, output_for(str(target)))
    assert seen == [False, False, False]
    assert target.exists()


async def test_a_link_is_written_through_and_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "real.jsonl").write_text("old\n")
    link = tmp_path / "link.jsonl"
    link.symlink_to(tmp_path / "real.jsonl")
    await export(source_of({"a": 1}), output_for(str(link)))
    assert link.is_symlink()
    assert (tmp_path / "real.jsonl").read_text() == '{"a": 1}\n'
    assert await export(source_of({"a": 1}), output_for("/dev/null", Format.CSV)) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
async def test_a_full_disk_is_one_sentence() -> None:
    records = [{"a": "x" * 1000}] * 100
    with pytest.raises(UsageError, match="could not be written: No space left on device"):
        await export(source_of(*records), Output(Path("/dev/full"), Format.JSONL))


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("books.xlsx", "has no known suffix; known are .jsonl, .csv."),
        ("books", "has no known suffix"),
        ("missing/books.csv", "does not exist; create it first."),
        ("folder.csv", "is a folder; name a file."),
    ],
)
def test_an_output_that_cannot_be_is_refused_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UsageError) as caught:
        output_for(target)
    assert sentence in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused_early(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="no permission"):
        output_for(str(tmp_path / "a.csv"))


def test_standard_output_is_jsonl_unless_said() -> None:
    assert output_for("-") == Output(None, Format.JSONL)
    assert output_for("-", Format.CSV) == Output(None, Format.CSV)


async def test_items_are_read_page_by_page_to_the_end() -> None:
    class Pages:
        async def items(self, run_id: str, cursor: int = 0, limit: int = 1000) -> ItemPage:
            item = Item(f"https://shop.example/{cursor}", None, msgspec.Raw(b"{}"))
            return ItemPage([item, item], cursor + 10 if cursor < 20 else None)

    reader: Reader = Pages()  # type: ignore[assignment]  # only what is used here
    assert [item.url[-2:] async for item in items_of(reader, "r")()] == ["/0", "/0", "10", "10", "20", "20"]

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
from shoal.runs.export import export as exporting
from shoal.runs.export.compression import decompressed
from shoal.runs.export.export import items_of
from shoal.runs.export.formats.choose import Format, need
from shoal.runs.export.output import Output, OutputOptions, output_for, outputs_for
from shoal.runs.export.places.local_file import IfExists
from shoal.runs.export.survey import ItemSource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def source_of(*bodies: object) -> ItemSource:
    async def read() -> AsyncIterator[Item]:
        for body in bodies:
            yield Item("https://shop.example/", None, msgspec.Raw(json.dumps(body).encode()))

    return read


async def export(source: ItemSource, output: Output) -> int:
    return await exporting.export(source, output, "run")


REPLACE, APPEND = OutputOptions(if_exists=IfExists.REPLACE), OutputOptions(if_exists=IfExists.APPEND)


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
        await export(read, output_for(str(target), REPLACE))
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
    await export(source_of({"a": 1}), output_for(str(link), REPLACE))
    assert link.is_symlink()
    assert (tmp_path / "real.jsonl").read_text() == '{"a": 1}\n'
    assert await export(source_of({"a": 1}), output_for("/dev/null", OutputOptions(Format.CSV))) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
async def test_a_full_disk_is_one_sentence() -> None:
    records = [{"a": "x" * 1000}] * 100
    with pytest.raises(UsageError, match="could not be written: No space left on device"):
        await export(source_of(*records), Output("/dev/full", Path("/dev/full"), Format.JSONL))


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("books.xlsx", "has no known suffix; known are .jsonl, .json, .csv, .parquet, .xml, with .gz and .zst behind."),
        ("books", "has no known suffix"),
        ("missing/books.csv", "does not exist; create it first."),
        ("folder.csv", "is a folder; name a file."),
        ("there.csv", "exists already; say --replace to write it anew, --append to add to it"),
        ("ftp://host/a.csv", "is of no known kind; known are files, file://, s3://"),
        ("books.parquet.gz", "a .parquet file is compressed inside; leave .gz away."),
        ("sqlite:///books.db", "names no table; write it behind the database: sqlite:///books.db#items."),
        ("s3://bucket", "is to be written as s3://BUCKET/PATH/items.jsonl"),
        ("s3://key:secret@bucket/a.csv", "keys and passwords come from the environment"),
    ],
)
def test_an_output_that_cannot_be_is_refused_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "there.csv").write_text("a\n")
    with pytest.raises(UsageError) as caught:
        output_for(target)
    assert sentence in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused_early(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(UsageError, match="no permission"):
        output_for(str(tmp_path / "a.csv"))


def test_standard_output_is_jsonl_unless_said() -> None:
    assert output_for("-") == Output("-", None, Format.JSONL)
    assert output_for("-", OutputOptions(Format.CSV)).format is Format.CSV


async def test_items_are_read_page_by_page_to_the_end() -> None:
    class Pages:
        async def items(self, run_id: str, cursor: int = 0, limit: int = 1000) -> ItemPage:
            item = Item(f"https://shop.example/{cursor}", None, msgspec.Raw(b"{}"))
            return ItemPage([item, item], cursor + 10 if cursor < 20 else None)

    reader: Reader = Pages()  # type: ignore[assignment]  # only what is used here
    assert [item.url[-2:] async for item in items_of(reader, "r")()] == ["/0", "/0", "10", "10", "20", "20"]


async def test_an_existing_file_is_refused_replaced_or_added_to_as_was_said(tmp_path: Path) -> None:
    target = tmp_path / "a.jsonl"
    target.write_text('{"old": 1}')
    with pytest.raises(UsageError, match="exists already"):
        output_for(str(target))
    await export(source_of({"new": 1}), output_for(str(target), APPEND))
    assert target.read_text() == '{"old": 1}\n{"new": 1}\n', "a last line without an end is ended first"
    await export(source_of({"new": 2}), output_for(str(target), REPLACE))
    assert target.read_text() == '{"new": 2}\n'


async def test_a_file_that_came_meanwhile_is_not_lost(tmp_path: Path) -> None:
    target = tmp_path / "a.jsonl"
    output = output_for(str(target))
    target.write_text("somebody else's\n")
    with pytest.raises(UsageError, match="exists already"):
        await export(source_of({}), output)
    assert target.read_text() == "somebody else's\n"
    assert names_in(tmp_path) == ["a.jsonl"]


async def test_an_empty_file_is_no_loss(tmp_path: Path) -> None:
    target = tmp_path / "a.jsonl"
    target.touch()
    assert await export(source_of({}), output_for(str(target))) == 1


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
async def test_a_csv_is_added_to_under_its_own_columns(tmp_path: Path, suffix: str) -> None:
    target = tmp_path / f"a.csv{suffix}"
    await export(source_of({"a": 1, "b": 2}), output_for(str(target)))
    await export(source_of({"b": 3}), output_for(str(target), APPEND))
    with target.open("rb") as packed:
        content = decompressed(packed, output_for(str(target), REPLACE).compression).read().decode()
    assert content == "a,b\n1,2\n,3\n"
    with pytest.raises(UsageError, match="has no column 'c'; choose --columns"):
        await export(source_of({"c": 1}), output_for(str(target), APPEND))


@pytest.mark.parametrize("name", ["a.json", "a.xml", "a.parquet"])
def test_what_cannot_be_added_to_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be appended to"):
        output_for(str(tmp_path / name), APPEND)


def test_an_output_is_written_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is given twice"):
        outputs_for([tmp_path / "a.jsonl", tmp_path / "." / "a.jsonl"])


def test_a_password_is_never_shown() -> None:
    output = output_for("sqlite:///a.db#items")
    assert output.shown == "sqlite:///a.db#items"
    assert output_for("postgresql://me:hidden@host/db#items").shown == "postgresql://me:***@host/db#items"
    with pytest.raises(UsageError) as caught:
        output_for("postgresql://me:hidden@host/db")
    assert "hidden" not in str(caught.value)


def test_a_file_may_be_named_by_its_url(tmp_path: Path) -> None:
    assert output_for(f"file://{tmp_path}/a%20b.csv").place == tmp_path / "a b.csv"


def test_a_library_that_is_missing_is_one_sentence_with_its_extra() -> None:
    with pytest.raises(UsageError, match=r"needs the library 'no_such'. Install .* 'shoal\[export\]'"):
        need("The output 'a.parquet'", "no_such", "export")

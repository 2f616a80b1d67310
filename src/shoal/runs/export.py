"""Items out of a run, into a file that is either whole or not there.

`.jsonl`: one object per line, as the handler yielded it. `.csv`: one column per key that any item has, in the order the
keys first appear; nested values as JSON text, None as nothing. Values are written as they are: a text that begins with
`=` stays so, and a spreadsheet that opens the file may take it for a formula (import such columns as text).
"""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from shoal.errors import UsageError
from shoal.frontier.contract.reader import Item, Reader

STDOUT = "-"


class Format(StrEnum):
    """How items are written. The value is also the suffix of such a file, without its dot."""

    JSONL = "jsonl"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class Output:
    """A place to export to, found to be usable. `path`: None = standard output."""

    path: Path | None
    format: Format


ItemSource = Callable[[], AsyncIterator[Item]]
"""Begins to read the items from the first one, each time it is called."""


def output_for(target: str, format_: Format | None = None) -> Output:
    """What `-o TARGET` means. Asks early what would otherwise fail late. Raises UsageError with one sentence.

    `format_`: None = by the suffix; standard output (`-`) is JSONL then.
    """
    if target == STDOUT:
        return Output(None, format_ or Format.JSONL)
    path = Path(target)
    if format_ is None:
        try:
            format_ = Format(path.suffix.lower().removeprefix("."))
        except ValueError:
            known = ", ".join(f".{each}" for each in Format)
            raise UsageError(f"The output {target!r} has no known suffix; known are {known}.") from None
    if path.is_dir():
        raise UsageError(f"The output {target!r} is a folder; name a file.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise UsageError(f"The folder {str(folder)!r} of the output does not exist; create it first.")
    if not os.access(path if _is_special(path) else folder, os.W_OK):
        raise UsageError(f"The output {target!r} cannot be written: no permission in {str(folder)!r}.")
    return Output(path, format_)


def outputs_for(targets: Iterable[str | Path], format_: Format | None = None) -> tuple[Output, ...]:
    """The same for several. Raises UsageError also if two of them are one."""
    found: dict[Path | None, Output] = {}
    for target in targets:
        output = output_for(str(target), format_)
        place = None if output.path is None else output.path.resolve()
        if found.setdefault(place, output) is not output:
            raise UsageError(f"The output {str(target)!r} is given twice; each is written once.")
    return tuple(found.values())


def items_of(reader: Reader, run_id: str) -> ItemSource:
    """The items of a run in the order they were settled, page by page."""

    async def read() -> AsyncIterator[Item]:
        cursor: int | None = 0
        while cursor is not None:
            page = await reader.items(run_id, cursor)
            for item in page.items:
                yield item
            cursor = page.cursor

    return read


async def export(source: ItemSource, output: Output) -> int:
    """Write all items that are there now. Answers how many. A file of that name is replaced at the end, at once."""
    keys, count = await _survey(source) if output.format is Format.CSV else ([], None)
    try:
        with writing(output.path) as stream:
            match output.format:
                case Format.JSONL:
                    return await _write_jsonl(source, stream)
                case Format.CSV:
                    return await _write_csv(source, stream, keys, count)
    except BrokenPipeError:
        raise
    except OSError as error:
        where = "Standard output" if output.path is None else f"The output {str(output.path)!r}"
        raise UsageError(f"{where} could not be written: {error.strerror}.") from error


async def _write_jsonl(source: ItemSource, stream: BinaryIO) -> int:
    count = 0
    async for item in source():
        body = bytes(item.body)
        stream.write(msgspec.json.format(body, indent=-1) if b"\n" in body else body)
        stream.write(b"\n")
        count += 1
    return count


async def _survey(source: ItemSource) -> tuple[list[str], int]:
    """All keys in order of first appearance, and the number of items they were seen in."""
    keys: dict[str, None] = {}
    count = 0
    async for item in source():
        keys.update(dict.fromkeys(_record(item)))
        count += 1
    return list(keys), count


async def _write_csv(source: ItemSource, stream: BinaryIO, keys: list[str], count: int | None) -> int:
    """The second pass. Stops after `count` items: one that came since the first may have keys without a column."""
    text = TextIOWrapper(stream, encoding="utf-8", newline="")
    writer = csv.writer(text, lineterminator="\n")
    written = 0
    if keys:
        writer.writerow(keys)
    async for item in source():
        if written == count:
            break
        record = _record(item)
        writer.writerow([_cell(record.get(key)) for key in keys])
        written += 1
    text.flush()
    text.detach()
    return written


def _record(item: Item) -> dict[str, Any]:
    return msgspec.json.decode(item.body, type=dict[str, Any])


def _cell(value: object) -> str:
    """A value as one cell: text as it is, None as nothing, all else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _is_special(path: Path) -> bool:
    """Whether this is a device or a pipe: nothing that could be replaced by renaming."""
    return path.exists() and not path.is_file()


@contextmanager
def writing(path: Path | None) -> Iterator[BinaryIO]:
    """A stream to write to, that becomes the file only if the block ends well. None = standard output."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if _is_special(path):
        with path.open("wb") as stream:
            yield stream
        return
    final = path.resolve()
    draft = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        with draft.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(final)
    finally:
        draft.unlink(missing_ok=True)

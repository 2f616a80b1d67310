"""Items written while the run works: each once, readable at once, and none left out at the end."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from shoal.errors import UsageError
from shoal.frontier.contract.reader import Item, ItemPage, Reader
from shoal.runs.export.live import LOOK_EVERY, written_meanwhile
from shoal.runs.export.output import OutputOptions, output_for
from shoal.runs.export.places.local_file import IfExists
from shoal.testing.jump_clock import JumpClock
from support.waiting import until

LIVE = OutputOptions(live=True)


class Growing:
    """A run whose items come one by one. A page has two; `lasting`: the last one's cursor leads on, too."""

    def __init__(self, *, lasting: bool) -> None:
        self.items_there: list[Item] = []
        self._lasting = lasting

    def add(self, number: int) -> None:
        self.items_there.append(Item("https://shop.example/", None, msgspec.Raw(json.dumps({"n": number}).encode())))

    async def items(self, run_id: str, cursor: int = 0, limit: int = 1000) -> ItemPage:
        page = self.items_there[cursor : cursor + 2]
        more = len(self.items_there) > cursor + 2 or (self._lasting and page)
        return ItemPage(page, cursor + len(page) if more else None)


@pytest.mark.parametrize("lasting", [True, False])
async def test_each_item_is_in_the_file_soon_and_once(tmp_path: Path, lasting: bool) -> None:
    growing, clock, target = Growing(lasting=lasting), JumpClock(), tmp_path / "a.jsonl"
    reader: Reader = growing  # type: ignore[assignment]  # only what is used here

    def lines() -> list[int]:
        return [json.loads(line)["n"] for line in target.read_text().splitlines()] if target.exists() else []

    async with written_meanwhile(reader, "run", [output_for(str(target), LIVE)], clock) as live:
        for number in range(5):
            growing.add(number)
            clock.advance(int(LOOK_EVERY * 1000))
            await until(lambda: lines() == list(range(number + 1)), "it is in the file")  # noqa: B023 - within the turn
        growing.add(5)
    assert live is not None
    assert (lines(), live.written) == (list(range(6)), 6), "what came last is written at the end"


async def test_a_table_and_a_csv_are_filled_live_if_their_columns_are_known(tmp_path: Path) -> None:
    growing = Growing(lasting=True)
    growing.add(1)
    reader: Reader = growing  # type: ignore[assignment]  # only what is used here
    options = OutputOptions(live=True, columns=("n",))
    targets = (str(tmp_path / "a.csv"), f"sqlite:///{tmp_path}/a.db#items")
    for target in targets:
        with pytest.raises(UsageError, match="must know its columns"):
            output_for(target, LIVE)
    outputs = [output_for(target, options) for target in targets]
    async with written_meanwhile(reader, "run", outputs, JumpClock()):
        growing.add(2)
    assert (tmp_path / "a.csv").read_text() == "n\n1\n2\n"
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (2,)


@pytest.mark.parametrize("name", ["a.json", "a.xml", "a.parquet", "a.jsonl.gz"])
def test_other_forms_cannot_be_written_live(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="can be written live"):
        output_for(str(tmp_path / name), LIVE)


async def test_a_live_file_that_exists_is_added_to_where_that_is_said(tmp_path: Path) -> None:
    growing, target = Growing(lasting=True), tmp_path / "a.csv"
    growing.add(2)
    reader: Reader = growing  # type: ignore[assignment]  # only what is used here
    target.write_text("m,n\n0,1\n")
    with pytest.raises(UsageError, match="exists already"):
        output_for(str(target), OutputOptions(live=True, columns=("n",)))
    options = OutputOptions(live=True, columns=("n",), if_exists=IfExists.APPEND)
    async with written_meanwhile(reader, "run", [output_for(str(target), options)], JumpClock()):
        pass
    assert target.read_text() == "m,n\n0,1\n,2\n"

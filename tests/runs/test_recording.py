"""The event log: off unless asked for, complete where it is on, and readable after a kill."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

import msgspec
import pytest

from shoal.config.settings import Settings
from shoal.core.task import NewTask, Policy
from shoal.frontier.contract.frontier import Ask, Frontier, NewRun
from shoal.frontier.recording import VERBS, RecordedEngine, RecordedFrontier, Recorder
from shoal.frontier.shared.liveness import introduce
from shoal.frontier.sqlite.engine import open_sqlite
from shoal.runs.open_store import opened
from shoal.testing.history import History
from support.command_line import shoal
from support.crawling import site_process, write_scraper

TASK = NewTask("http://a.example/1", "a.example", bytes(32))


def test_every_verb_of_the_frontier_is_written_down() -> None:
    verbs = {name for name, _ in inspect.getmembers(Frontier, inspect.isfunction) if not name.startswith("_")}
    assert set(VERBS) == verbs
    assert {name for name in vars(RecordedFrontier) if not name.startswith("_")} == verbs


async def test_calls_are_read_back_as_they_were_made(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "events")
    engine = RecordedEngine(await open_sqlite(tmp_path / "shoal.db"), recorder)
    info, notebook = introduce()
    run = await engine.frontier.create_run(NewRun("run", "s", Policy(delay=0)))
    enqueued = await engine.frontier.enqueue("run", [TASK])
    ask = Ask(info, ["s"], ["bulk"], {"default": ["direct"]}, 5)
    granted = await engine.frontier.exchange(ask)
    swept = await engine.frontier.sweep()
    await engine.close()
    notebook.close()
    history = History.read(tmp_path / "events")
    assert [call.verb for call in history.calls] == ["create_run", "enqueue", "exchange", "sweep"]
    assert [call.answer for call in history.calls] == [run, enqueued, granted, swept]
    assert history.calls[1].given.tasks == [TASK]
    assert msgspec.structs.replace(history.calls[2].given, settlements=(), private=(), notes=()) == ask
    assert {call.pid for call in history.calls} == {os.getpid()}
    assert not any(call.doubtful for call in history.calls)


async def test_what_failed_or_was_cut_off_is_in_doubt(tmp_path: Path) -> None:
    engine = RecordedEngine(await open_sqlite(tmp_path / "shoal.db"), Recorder(tmp_path / "events"))
    await engine.frontier.create_run(NewRun("run", "s", Policy()))
    with pytest.raises(Exception, match="no run"):
        await engine.frontier.enqueue("nowhere", [TASK])
    await engine.frontier.enqueue("run", [TASK])
    (file,) = (tmp_path / "events").iterdir()
    file.write_bytes(file.read_bytes()[:-20])
    history = History.read(tmp_path / "events")
    await engine.close()
    assert history.torn == 1
    assert [call.doubtful for call in history.calls] == [False, True, True]
    assert history.calls[1].ended_at is not None
    assert history.calls[2].ended_at is None


async def test_without_the_setting_nothing_stands_in_between(tmp_path: Path) -> None:
    async with opened(Settings(engine=f"sqlite:///{tmp_path}/shoal.db"), create=True) as engine:
        assert not isinstance(engine, RecordedEngine)


def test_the_setting_makes_each_process_write_its_own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHOAL_EVENTS", "log/of/events")
    with site_process(tmp_path) as (port, _):
        scraper = write_scraper(tmp_path, [f"http://127.0.0.1:{port}/site/5/"], delay=0)
        assert shoal("run", str(scraper), "--workers", "2", "--quiet").returncode == 0
    history = History.read(tmp_path / "log" / "of" / "events")
    assert history.processes == 2
    granted = [lease.task.url for call in history.of("exchange") for lease in call.answer.leases]
    assert len(granted) == 5


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SHOAL_EVENTS", "file/events")
    scraper = write_scraper(tmp_path, ["http://127.0.0.1:9/"], delay=0)
    answer = shoal("run", str(scraper))
    assert answer.returncode == 2
    assert answer.stderr.splitlines()[-1].endswith("nothing can be written there (Not a directory).")

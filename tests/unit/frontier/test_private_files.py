"""Files of a store and of workers: their user's alone, and never where somebody else has laid a trap."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from shoal.errors import EngineRefused
from shoal.frontier.open import open_engine
from shoal.frontier.recording import Recorder
from shoal.frontier.shared.liveness import introduce, owners_of_notebooks, read_notebook


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder as `/tmp` is."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


async def test_the_files_of_a_store_are_its_users_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        engine = await open_engine(f"sqlite:///{tmp_path}/shoal.db")
    finally:
        os.umask(before)
    assert await engine.reader.runs() == []
    assert modes(tmp_path) == dict.fromkeys(["shoal.db", "shoal.db-wal", "shoal.db-shm"], 0o600)
    await engine.close()


async def test_a_store_follows_no_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "shoal.db").symlink_to(tmp_path / "victim")
    with pytest.raises(EngineRefused, match="leads nowhere"):
        await open_engine(f"sqlite:///{tmp_path}/shoal.db")
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
async def test_a_link_in_a_folder_of_all_is_not_followed(shared: Path, tmp_path: Path, suffix: str) -> None:
    victim = tmp_path / "victim"
    victim.touch()
    (shared / f"shoal.db{suffix}").symlink_to(victim)
    with pytest.raises(EngineRefused, match="folder of your own"):
        await open_engine(f"sqlite:///{shared}/shoal.db")
    assert victim.read_bytes() == b""


async def test_a_link_of_ones_own_is_followed(tmp_path: Path) -> None:
    real = await open_engine(f"sqlite:///{tmp_path}/real.db")
    await real.close()
    (tmp_path / "shoal.db").symlink_to(tmp_path / "real.db")
    engine = await open_engine(f"sqlite:///{tmp_path}/shoal.db")
    await engine.close()


class TestNotebooks:
    @pytest.fixture(autouse=True)
    def _place(self, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(tempfile, "tempdir", str(shared))

    def test_they_are_their_users_alone(self, shared: Path) -> None:
        before = os.umask(0)
        try:
            info, notebook = introduce()
        finally:
            os.umask(before)
        (folder,) = shared.iterdir()
        assert modes(shared) == {folder.name: 0o700}
        assert set(modes(folder).values()) == {0o600}
        assert owners_of_notebooks() == {Path(str(info.notebook)).name: os.getpid()}
        with notebook.holding(7):
            assert read_notebook(info.notebook) == frozenset({7})
        notebook.close()

    @pytest.mark.parametrize("trap", ["link", "open"])
    def test_a_folder_that_somebody_laid_out_is_not_used(self, shared: Path, tmp_path: Path, trap: str) -> None:
        planted = shared / f"shoal-{os.getuid()}"
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        if trap == "link":
            planted.symlink_to(elsewhere)
        else:
            planted.mkdir()
            planted.chmod(0o777)
        info, notebook = introduce()
        assert list(elsewhere.iterdir()) == []
        assert Path(str(info.notebook)).parent != planted
        assert stat.S_IMODE(Path(str(info.notebook)).parent.stat().st_mode) == 0o700
        notebook.close()

    def test_what_the_store_calls_a_notebook_need_not_be_one(self, tmp_path: Path) -> None:
        real = tmp_path / "real"
        real.write_bytes(bytes(15) + b"\1")
        (tmp_path / "link").symlink_to(real)
        os.mkfifo(tmp_path / "pipe")
        for odd in ("/dev/zero", str(tmp_path), str(tmp_path / "link"), str(tmp_path / "pipe"), "a\0b", ""):
            assert read_notebook(odd) is None, odd
        real.write_bytes(b"\1" + bytes(9))
        assert read_notebook(str(real)) == frozenset({1}), "half an entry is none"


def test_event_files_are_their_users_alone(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "events")
    recorder.close()
    assert set(modes(tmp_path / "events").values()) == {0o600}
    assert modes(tmp_path) == {"events": 0o700}

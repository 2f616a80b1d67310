"""Disks that SQLite cannot use: full ones, and those of other machines. One sentence each."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.errors import EngineFull, EngineRefused
from shoal.frontier.contract.engine import Engine
from shoal.frontier.sqlite.engine import open_sqlite
from shoal.frontier.sqlite.store.connection import file_system_of, open_file
from support.sqlite_files import accepted, is_one_sentence, make, opened, put


class TestFull:
    async def test_no_room_for_more_pages(self, path: Path) -> None:
        """What was acknowledged is safe, and with room again the same engine goes on."""
        await make(path, tasks=0)
        async with opened(path) as engine:
            writer = engine._writer._connection
            [(used,)] = writer.execute("PRAGMA page_count").fetchall()
            writer.execute(f"PRAGMA max_page_count = {used + 30}")
            stored = await self._fill(engine, path)
            counts = (await engine.reader.run("run")).counters
            assert counts.accepted == stored
            writer.execute("PRAGMA max_page_count = 1000000")
            await put(engine, stored, 100)
        assert await accepted(path) == stored + 100

    async def test_a_full_disk(self, tmp_path: Path, small_disk: Path) -> None:
        path = small_disk / "shoal.db"
        await make(path, tasks=0)
        async with opened(path) as engine:
            stored = await self._fill(engine, path)
            assert (await engine.reader.run("run")).counters.accepted == stored
        for suffix in ("", "-wal"):  # as long as there is no room, what was written stays beside the file
            if (beside := path.with_name(path.name + suffix)).exists():
                shutil.copy(beside, tmp_path / beside.name)
        assert await accepted(tmp_path / path.name) == stored

    async def test_no_room_for_a_new_file(self, small_disk: Path) -> None:
        (small_disk / "ballast").write_bytes(bytes(_free_bytes(small_disk) - 20_000))
        path = small_disk / "shoal.db"
        with pytest.raises(EngineFull) as caught:
            await open_sqlite(path)
        assert is_one_sentence(caught.value, path)
        (small_disk / "ballast").unlink()
        await make(path)
        assert await accepted(path) == 3

    async def _fill(self, engine: Engine, path: Path) -> int:
        """Put in batches of 100 until there is no room. Answers how many tasks were acknowledged."""
        caught: EngineFull | None = None
        stored = 0
        while caught is None:
            try:
                await put(engine, stored, 100)
                stored += 100
            except EngineFull as error:
                caught = error
        assert is_one_sentence(caught, path)
        assert "no space left" in str(caught)
        return stored

    @pytest.fixture
    def small_disk(self, tmp_path: Path) -> Iterator[Path]:
        place = tmp_path / "disk"
        place.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=2m", "shoal-test", str(place)], capture_output=True, check=False
        )
        if mounted.returncode:
            pytest.skip("lacks a small disk: mounting one needs root")
        yield place
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def _free_bytes(place: Path) -> int:
    return shutil.disk_usage(place).free


class TestNetworkFileSystems:
    @pytest.fixture
    def mounts(self, tmp_path: Path) -> Path:
        return tmp_path / "mounts"

    @pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs", "9p"])
    def test_they_are_refused(self, path: Path, mounts: Path, kind: str) -> None:
        mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/x {path.parent} {kind} rw 0 0\n")
        with pytest.raises(EngineRefused, match="network file system") as caught:
            open_file(path, create=True, migrate=False, mounts=mounts)
        assert is_one_sentence(caught.value, path)
        assert not path.exists()

    def test_the_innermost_and_latest_mount_counts(self, mounts: Path) -> None:
        lines = [
            "server:/ / nfs4 rw 0 0",
            "/dev/sdb /data ext4 rw 0 0",
            "server:/x /data/far\\040away nfs4 rw 0 0",
            "/dev/sdc /data/far\\040away/near xfs rw 0 0",
            "/dev/sdd /data/two ext4 rw 0 0",
            "server:/y /data/two nfs rw 0 0",
        ]
        mounts.write_text("\n".join(lines))
        assert file_system_of(Path("/srv/shoal.db"), mounts) == "nfs4"
        assert file_system_of(Path("/data/shoal.db"), mounts) == "ext4"
        assert file_system_of(Path("/data/far away/shoal.db"), mounts) == "nfs4"
        assert file_system_of(Path("/data/far away/near/shoal.db"), mounts) == "xfs"
        assert file_system_of(Path("/data/two/shoal.db"), mounts) == "nfs"
        assert file_system_of(Path("/database/shoal.db"), mounts) == "nfs4", "not what merely begins alike"

    def test_this_machine_has_file_systems(self, tmp_path: Path) -> None:
        assert file_system_of(tmp_path / "shoal.db")

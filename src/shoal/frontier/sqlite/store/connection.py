"""Connections to the file: one that writes, with the schema in place, and those that only look."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from shoal.errors import EngineRefused, NoStore
from shoal.frontier.contract.schema import Schema
from shoal.frontier.contract.timeouts import StoreTimeouts
from shoal.frontier.shared.private_files import new_private_file, refuse_planted
from shoal.frontier.sqlite.errors import clear_errors, primary_code
from shoal.frontier.sqlite.schema import SCHEMA_VERSION, ensure_schema

OLDEST_SQLITE = (3, 38, 0)
MOUNTS = Path("/proc/self/mounts")
"""What is mounted where, as Linux tells it."""

TIMEOUTS = StoreTimeouts(connect=30.0, call=30.0)
"""So long a lock of others is waited for."""

SWITCH_TRIES = 300
BESIDE = ("-wal", "-shm", "-journal")
"""What the names of the files end with that SQLite keeps beside its own."""

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs", "ceph", "9p", "virtiofs", "glusterfs"}
)


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """A connection ready for writing, with the schema in place. Raises an EngineError with one clear sentence."""
    return open_file(path, create=create, migrate=False)[0]


def open_file(
    path: Path, *, create: bool, migrate: bool, patience: float = TIMEOUTS.call, mounts: Path = MOUNTS
) -> tuple[sqlite3.Connection, Schema]:
    """As `connect`; answers also which schema was found. `migrate`: an older one is brought up to this version.

    `patience`: seconds that a lock of others is waited for. `mounts`: see `MOUNTS`.
    """
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise EngineRefused(f"SQLite {sqlite3.sqlite_version} is too old; Shoal needs 3.38 or newer.")
    if not create and not path.exists():
        raise NoStore(f"There is no file {path} yet. Start a run, or name another engine with --engine.")
    if path.is_dir():
        raise EngineRefused(f"{path} is a folder. Name a file, as in --engine sqlite:///{path}/shoal.db.")
    _refuse_network(path, mounts)
    _keep_private(path)
    with clear_errors(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
        try:
            found = _prepare(connection, path, migrate=migrate, patience=patience)
        except BaseException:
            connection.close()
            raise
    return connection, Schema(SCHEMA_VERSION, found)


def _keep_private(path: Path) -> None:
    """A new file is its user's alone, and so are those that SQLite puts beside it: they take its mode."""
    refuse_planted([path, *(path.with_name(path.name + suffix) for suffix in BESIDE)])
    try:
        os.close(new_private_file(path))
    except FileExistsError:
        if not path.exists():
            raise EngineRefused(f"{path} is a link that leads nowhere. Remove it, or name another file.") from None
    except OSError:
        pass  # SQLite finds out as well, and says what is wrong


def connect_reading(path: Path, patience: float = TIMEOUTS.call) -> sqlite3.Connection:
    """A connection for looking at a file that `connect` has opened before."""
    with clear_errors(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA busy_timeout = {_ms(patience)}")
        connection.execute("PRAGMA query_only = ON")
        return connection


def _prepare(connection: sqlite3.Connection, path: Path, *, migrate: bool, patience: float) -> int | None:
    if _journal(connection, patience) != "wal":
        raise EngineRefused(
            f"{path} is on a file system without shared memory, which Shoal needs. Choose a local disk."
        )
    for setting in (
        "synchronous = FULL",
        "cache_size = -32768",
        "temp_store = MEMORY",
        "secure_delete = OFF",
        "wal_autocheckpoint = 4000",
        "journal_size_limit = 67108864",
    ):
        connection.execute(f"PRAGMA {setting}")
    connection.execute(f"PRAGMA busy_timeout = {_ms(patience)}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = ensure_schema(connection, path, migrate=migrate)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return found


def _journal(connection: sqlite3.Connection, patience: float) -> str:
    """Turn on the write-ahead log. Answers how the file is journalled now.

    Where several do this to a new file at the same moment, SQLite tells some of them at once that it is locked, however
    long they would wait. So they wait here, in between tries that together are as patient as any other call.
    """
    connection.execute(f"PRAGMA busy_timeout = {_ms(patience / 2 / SWITCH_TRIES)}")
    for _ in range(SWITCH_TRIES - 1):
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY:
                raise
        time.sleep(patience / 2 / SWITCH_TRIES)
    return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def file_system_of(path: Path, mounts: Path = MOUNTS) -> str | None:
    """The kind of file system that holds `path`, as Linux names it; None where that cannot be told."""
    try:
        entries = mounts.read_text().splitlines()
    except OSError:
        return None
    place = path.parent.resolve()
    best: tuple[int, str | None] = (-1, None)
    for entry in entries:
        parts = entry.split(" ")
        point = Path(parts[1].replace("\\040", " "))
        if (place == point or point in place.parents) and len(point.parts) >= best[0]:
            best = (len(point.parts), parts[2])
    return best[1]


def _refuse_network(path: Path, mounts: Path) -> None:
    kind = file_system_of(path, mounts)
    if kind in NETWORK_FILE_SYSTEMS:
        raise EngineRefused(
            f"{path} is on a network file system ({kind}), where SQLite's locks do not hold. "
            "Choose a local disk, or an engine made for several machines."
        )

"""Opening the file, and saying in one sentence why it cannot be used."""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.errors import EngineBroken, EngineError, EngineFull, EngineRefused, EngineUnavailable, NoStore
from shoal.frontier.schema import Schema, steps
from shoal.frontier.sqlite.statements import STATEMENTS

SCHEMA_VERSION = 9
APPLICATION_ID = 0x53484F41  # "SHOA"
OLDEST_SQLITE = (3, 38, 0)
BUSY_TIMEOUT = 30_000
SWITCH_TRIES = 300
SMALLEST_ROOM = 65_536
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs", "afs", "ceph", "9p", "virtiofs", "glusterfs"}
)

_PRIMARY = 0xFF
_SENTENCES: dict[int, tuple[type[EngineError], str]] = {
    sqlite3.SQLITE_FULL: (
        EngineFull,
        "There is no space left for {path}. Free some space and go on with --resume: what was acknowledged is safe.",
    ),
    sqlite3.SQLITE_READONLY: (
        EngineRefused,
        "{path} cannot be written to. Check its permissions and its folder's.",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        EngineRefused,
        "{path} cannot be opened. Check that its folder exists and is writable.",
    ),
    sqlite3.SQLITE_PERM: (EngineRefused, "{path} cannot be opened: permission denied."),
    sqlite3.SQLITE_BUSY: (
        EngineUnavailable,
        "{path} is locked by another program. End it (or wait for it) and go on with --resume.",
    ),
    sqlite3.SQLITE_LOCKED: (EngineUnavailable, "{path} is locked by another program. End it and go on with --resume."),
    sqlite3.SQLITE_IOERR: (EngineUnavailable, "Reading or writing {path} failed. Check the disk it is on."),
    sqlite3.SQLITE_CORRUPT: (
        EngineBroken,
        "{path} is damaged. Restore it from a backup, or choose another file with --engine sqlite:///new.db.",
    ),
    sqlite3.SQLITE_NOTADB: (
        EngineBroken,
        "{path} is not a SQLite file. Choose another one with --engine sqlite:///new.db.",
    ),
}


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Translate what SQLite raises, in this one place."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
        if code not in _SENTENCES:
            raise
        if code == sqlite3.SQLITE_IOERR and _is_full(path):
            code = sqlite3.SQLITE_FULL
        kind, sentence = _SENTENCES[code]
        raise kind(sentence.format(path=path)) from error


def _is_full(path: Path) -> bool:
    """Whether there is no room for even one more file: what SQLite then says of its shared memory is "I/O error"."""
    try:
        return shutil.disk_usage(path.parent).free < SMALLEST_ROOM
    except OSError:
        return False


def connect(path: Path, *, create: bool) -> sqlite3.Connection:
    """A connection ready for writing, with the schema in place. Raises an EngineError with one clear sentence."""
    return open_file(path, create=create, migrate=False)[0]


def open_file(path: Path, *, create: bool, migrate: bool) -> tuple[sqlite3.Connection, Schema]:
    """As `connect`; answers also which schema was found. `migrate`: an older one is brought up to this version."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        raise EngineRefused(f"SQLite {sqlite3.sqlite_version} is too old; Shoal needs 3.38 or newer.")
    if not create and not path.exists():
        raise NoStore(f"There is no file {path} yet. Start a run, or name another engine with --engine.")
    if path.is_dir():
        raise EngineRefused(f"{path} is a folder. Name a file, as in --engine sqlite:///{path}/shoal.db.")
    _refuse_network(path)
    with clear_errors(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
        try:
            found = _prepare(connection, path, migrate=migrate)
        except BaseException:
            connection.close()
            raise
    return connection, Schema(SCHEMA_VERSION, found)


def connect_reading(path: Path) -> sqlite3.Connection:
    """A connection for looking at a file that `connect` has opened before."""
    with clear_errors(path):
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT}")
        connection.execute("PRAGMA query_only = ON")
        return connection


def _prepare(connection: sqlite3.Connection, path: Path, *, migrate: bool) -> int | None:
    if _journal(connection) != "wal":
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
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = _ensure_schema(connection, path, migrate=migrate)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return found


def _journal(connection: sqlite3.Connection) -> str:
    """Turn on the write-ahead log. Answers how the file is journalled now.

    Where several do this to a new file at the same moment, SQLite tells some of them at once that it is locked, however
    long they would wait. So they wait here, in between tries that together are as patient as any other call.
    """
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT // 2 // SWITCH_TRIES}")
    for _ in range(SWITCH_TRIES - 1):
        try:
            return str(_value(connection, "PRAGMA journal_mode = WAL"))
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY != sqlite3.SQLITE_BUSY:
                raise
        time.sleep(BUSY_TIMEOUT / 2000 / SWITCH_TRIES)
    return str(_value(connection, "PRAGMA journal_mode = WAL"))


def _ensure_schema(connection: sqlite3.Connection, path: Path, *, migrate: bool) -> int | None:
    """Make the schema, or bring it up to this version. Answers the version that was found; None = there was none."""
    if not _value(connection, "SELECT count(*) FROM sqlite_schema"):
        _execute(connection, "schema")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        return None
    if _value(connection, "PRAGMA application_id") != APPLICATION_ID:
        raise EngineBroken(f"{path} belongs to another program. Choose another file with --engine sqlite:///new.db.")
    found = int(_value(connection, "PRAGMA user_version"))
    for step in steps(str(path), found, SCHEMA_VERSION, STATEMENTS, migrate=migrate):
        _execute(connection, step)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    return found


def _execute(connection: sqlite3.Connection, name: str) -> None:
    for statement in STATEMENTS[name].split(";\n"):
        if statement.strip():
            connection.execute(statement)


def _value(connection: sqlite3.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]


def file_system_of(path: Path) -> str | None:
    """The kind of file system that holds `path`, as Linux names it; None where that cannot be told."""
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return None
    place = path.parent.resolve()
    best: tuple[int, str | None] = (-1, None)
    for entry in mounts:
        parts = entry.split(" ")
        point = Path(parts[1].replace("\\040", " "))
        if (place == point or point in place.parents) and len(point.parts) >= best[0]:
            best = (len(point.parts), parts[2])
    return best[1]


def _refuse_network(path: Path) -> None:
    kind = file_system_of(path)
    if kind in NETWORK_FILE_SYSTEMS:
        raise EngineRefused(
            f"{path} is on a network file system ({kind}), where SQLite's locks do not hold. "
            "Choose a local disk, or an engine made for several machines."
        )

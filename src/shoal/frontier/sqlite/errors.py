"""What SQLite raises, translated in this one place: each error is one sentence that says what to do."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from shoal.errors import EngineBroken, EngineError, EngineFull, EngineRefused, EngineUnavailable
from shoal.frontier.shared.refusals import UNENCODABLE, unstorable

SMALLEST_ROOM = 65_536

UNSTORABLE = frozenset({sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_CONSTRAINT})
_PRIMARY = 0xFF
_SENTENCES: Final[dict[int, tuple[type[EngineError], str]]] = {
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
    """What SQLite raises about the file at `path` is raised as an EngineError; what is a fault of ours, as it is."""
    try:
        yield
    except UNENCODABLE as error:
        raise unstorable(str(path), error) from error
    except sqlite3.Error as error:
        code = primary_code(error)
        if code in UNSTORABLE or isinstance(error, sqlite3.DataError):
            raise unstorable(str(path), error) from error
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


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's result code without what it adds to it; 0 = there is none."""
    return getattr(error, "sqlite_errorcode", 0) & _PRIMARY

"""Private files: made for this user alone (0600), under names that nobody can have taken before, no link followed."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from shoal.errors import EngineRefused

PRIVATE = 0o600
NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | getattr(os, "O_NOFOLLOW", 0)


def new_private_file(path: Path) -> int:
    """The descriptor of a file that was not there before. Raises FileExistsError, also for a link to nowhere."""
    return os.open(path, NEW, PRIVATE)


def private_folder(path: Path) -> Path:
    """The folder, made if need be, if it is this user's alone; else one of another name, which is."""
    with suppress(OSError):
        path.mkdir(mode=0o700)
    with suppress(OSError):
        found = path.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
            return path
    return Path(tempfile.mkdtemp(prefix=f"{path.name}-"))


def read_private_file(path: Path, most: int) -> bytes:
    """Up to so many bytes of a plain file; no link, pipe or device is read. Raises OSError."""
    descriptor = os.open(path, READ)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)


def is_open_to_all(folder: Path) -> bool:
    """Whether anybody on this machine may replace files of this folder by their own."""
    try:
        mode = folder.stat().st_mode
    except OSError:
        return False
    return bool(mode & stat.S_IWOTH) and not mode & stat.S_ISVTX


def refuse_planted(files: list[Path]) -> None:
    """Raise EngineRefused if one of these lies where anybody may put files, and somebody else did."""
    try:
        if not files[0].parent.stat().st_mode & stat.S_IWOTH:
            return
    except OSError:
        return
    for file in files:
        with suppress(FileNotFoundError):
            found = file.lstat()
            if found.st_uid not in (os.getuid(), 0) or stat.S_ISLNK(found.st_mode):
                raise EngineRefused(
                    f"{file} was put there by somebody else, or is a link: anybody may write to {file.parent}. "
                    "Choose a folder of your own."
                )

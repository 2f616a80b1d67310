"""A file of this machine that is either whole or not there; or standard output, a pipe, a device."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO

from shoal.errors import UsageError

STDOUT = "-"


class IfExists(StrEnum):
    """What becomes of a file that is there already."""

    REFUSE = "refuse"
    """It stays, and nothing is written."""
    REPLACE = "replace"
    APPEND = "append"


def file_for(target: str, if_exists: IfExists = IfExists.REFUSE) -> Path | None:
    """The file that a target means, found to be writable; None = standard output. Raises UsageError."""
    if target == STDOUT:
        return None
    path = Path(target)
    if path.is_dir():
        raise UsageError(f"The output {target!r} is a folder; name a file.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise UsageError(f"The folder {str(folder)!r} of the output does not exist; create it first.")
    if not os.access(path if is_special(path) else folder, os.W_OK):
        raise UsageError(f"The output {target!r} cannot be written: no permission in {str(folder)!r}.")
    refuse_existing(path, if_exists)
    return path


def refuse_existing(path: Path, if_exists: IfExists) -> None:
    """Raises UsageError if a file would be lost that nobody has said may be. An empty one is no loss."""
    if if_exists is IfExists.REFUSE and has_content(path):
        raise exists_already(str(path))


def exists_already(target: str) -> UsageError:
    """The sentence for whoever meets something that is there."""
    return UsageError(
        f"The output {target!r} exists already; say --replace to write it anew, --append to add to it "
        '(in Python: if_exists="replace" or "append"), or choose another name.'
    )


def has_content(path: Path | None) -> bool:
    """Whether there is a file with something in it."""
    return path is not None and path.is_file() and path.stat().st_size > 0


def is_special(path: Path) -> bool:
    """Whether this is a device or a pipe: nothing that could be replaced by renaming."""
    return path.exists() and not path.is_file()


@contextmanager
def writing(path: Path | None, if_exists: IfExists = IfExists.REPLACE) -> Iterator[BinaryIO]:
    """A stream to write to, that becomes the file only if the block ends well. None = standard output.

    To append, what is there is copied first: whoever reads the file meets it as it was, or with all that was added.
    """
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if is_special(path):
        with path.open("wb") as stream:
            yield stream
        return
    final = path.resolve()
    draft = final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        with draft.open("wb") as stream:
            if if_exists is IfExists.APPEND and final.exists():
                with final.open("rb") as old:
                    shutil.copyfileobj(old, stream)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        refuse_existing(final, if_exists)
        draft.replace(final)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def writing_live(path: Path | None, if_exists: IfExists) -> Iterator[BinaryIO]:
    """The file itself, for readers that watch it grow. None = standard output."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    refuse_existing(path, if_exists)
    with path.open("ab" if if_exists is IfExists.APPEND else "wb") as stream:
        yield stream

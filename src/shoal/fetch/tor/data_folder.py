"""Where a Tor daemon keeps what it knows: folders that are used one at a time, each with the name of an exit.

The clocks of sites are kept by the exit's name. So the name stays with the folder: a worker that is started again takes
the first folder that is free, and goes on where the last one was, with its clocks, its entry relays and its directory.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import secrets
import socket
import tempfile
from pathlib import Path

from shoal.core.exit_address import TOR_NAMED
from shoal.errors import TorFailed


class TorFolder:
    """One folder, ours until it is closed or this process is gone, however that came."""

    def __init__(self, path: Path, lock: int, name: str) -> None:
        self.path = path
        self.name = name
        self._lock = lock

    def close(self) -> None:
        """Leave it to others. The second time: nothing."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def take_folder(base: str | None) -> TorFolder:
    """The first folder in `base` that nobody uses. None = this user's folder for state. Raises TorFailed."""
    home = Path(base).expanduser() if base else _usual_place()
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in itertools.count():
            folder = _take(home / str(number))
            if folder is not None:
                return folder
        raise AssertionError  # there is always one more
    except OSError as error:
        raise TorFailed(
            f"Tor has no folder to work in: {error.filename or home} cannot be used ({error.strerror}). Name another "
            "in `folder` of [tor] in shoal.toml."
        ) from None


def _take(path: Path) -> TorFolder | None:
    path.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return TorFolder(path.resolve(), lock, _name(path / "name"))
    except BlockingIOError:
        os.close(lock)
        return None
    except BaseException:
        os.close(lock)
        raise


def _name(file: Path) -> str:
    """The name that was given to this folder when it was first used."""
    known = file.read_text().strip() if file.exists() else ""
    if known:
        return known
    host = re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname().partition(".")[0]) or "host"
    name = f"{TOR_NAMED}{host}-{secrets.token_hex(3)}"
    file.write_text(f"{name}\n")
    return name


def _usual_place() -> Path:
    """By the user's own settings, or below the home folder; a user without one keeps it for as long as `/tmp` does."""
    state = os.environ.get("XDG_STATE_HOME")
    if state:
        return Path(state) / "shoal" / "tor"
    try:
        home = Path.home()
    except RuntimeError:
        home = Path("/nonexistent")
    if os.access(home, os.W_OK):
        return home / ".local" / "state" / "shoal" / "tor"
    return Path(tempfile.gettempdir()) / f"shoal-tor-{os.getuid()}"

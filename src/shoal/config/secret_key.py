"""Where the key is that secrets are sealed with: in the settings, in a file, in the system's keyring.

    secret_key = "…"             32 characters or more, the same for all of a fleet; best by SHOAL_SECRET_KEY
    secret_key = "file:PATH"     in that file, as systemd and Docker hand out secrets
    secret_key = "keyring"       in the keyring of this user, made there when first needed
    secret_key = "new,old"       the first one seals, all of them open: while a key is being changed

Where none is set, a key is made when there is first something to seal, and kept in a file that only this user reads:
beside the file of SQLite, for other stores in this user's folder for state.
"""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.core.secrets.box import SecretBox
from shoal.errors import BadSettings, EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.config.settings import Settings

SHORTEST = 32
LARGEST_FILE = 4096
KEYRING = "keyring"
IN_FILE = "file:"
SERVICE, ACCOUNT = "shoal", "secret_key"


def secret_box(settings: Settings) -> SecretBox:
    """What seals and opens with the keys of these settings. Nothing is looked for before it is needed."""
    return SecretBox(lambda: secret_keys(settings))


def secret_keys(settings: Settings) -> Sequence[str]:
    """The keys, the one that seals first. Raises BadSettings, in which no key appears."""
    given = settings.secret_key
    if given is None:
        return (_kept_in(_usual_file(settings.engine)),)
    keys = [_named(each.strip()) for each in given.get_secret_value().split(",") if each.strip()]
    if not keys or any(len(key) < SHORTEST for key in keys):
        raise BadSettings(
            f"secret_key is too short: a key has {SHORTEST} characters or more. "
            "`python3 -c 'import secrets; print(secrets.token_urlsafe(32))'` makes one."
        )
    return keys


def new_key() -> str:
    """A key of 256 random bits."""
    return secrets.token_urlsafe(32)


def _named(text: str) -> str:
    if text == KEYRING:
        return _from_keyring()
    return _read(Path(text.removeprefix(IN_FILE)).expanduser()) if text.startswith(IN_FILE) else text


def _usual_file(engine: str) -> Path:
    from shoal.frontier.open import sqlite_path  # noqa: PLC0415 - brings an engine

    scheme, _, rest = engine.partition("://")
    if scheme == "sqlite":
        file = sqlite_path(engine, rest)
        return file.with_name(f"{file.name}.key")
    state = os.environ.get("XDG_STATE_HOME")
    folder = (Path(state) if state else Path("~/.local/state").expanduser()) / "shoal"
    return folder / "secret.key"


def _kept_in(file: Path) -> str:
    """The key of a file, which is made if it is not there. Of several who make it at once, all get the same."""
    if not os.path.lexists(file):
        try:
            _make(file)
        except OSError as error:
            raise BadSettings(
                f"There is something to seal, and no key: {file} cannot be made ({error.strerror}). Set secret_key, "
                "best by SHOAL_SECRET_KEY."
            ) from None
    return _read(file)


def _make(file: Path) -> None:
    """Whole or not at all: written under another name, and then linked, which fails if somebody was first."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "w") as opened:
            opened.write(f"{new_key()}\n")
            opened.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(name, file, follow_symlinks=False)
    finally:
        Path(name).unlink()


def _read(file: Path) -> str:
    from shoal.frontier.shared.private_files import read_private_file  # noqa: PLC0415 - for those who have a key there

    try:
        mode = file.lstat().st_mode
        text = read_private_file(file, LARGEST_FILE).decode().strip()
    except (OSError, UnicodeDecodeError, EngineError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise BadSettings(f"The key in {file} cannot be read ({why}).") from None
    if stat.S_IMODE(mode) & 0o077:
        raise BadSettings(f"The key in {file} can be read by others: `chmod 600 {file}`, and better make another.")
    if len(text) < SHORTEST:
        raise BadSettings(f"The key in {file} is too short: a key has {SHORTEST} characters or more.")
    return text


def _from_keyring() -> str:
    try:
        import keyring  # noqa: PLC0415 - an extra
        from keyring.errors import KeyringError  # noqa: PLC0415 - as above
    except ImportError:
        raise BadSettings(
            "secret_key = \"keyring\" needs the package keyring. Install it with: pip install 'shoal[keyring]'."
        ) from None
    try:
        found: str | None = keyring.get_password(SERVICE, ACCOUNT)
        if found is None:
            found = new_key()
            keyring.set_password(SERVICE, ACCOUNT, found)
    except KeyringError as error:
        raise BadSettings(
            f'secret_key = "keyring": this user has no keyring that can be used here ({error}). Set a key instead, '
            "best by SHOAL_SECRET_KEY."
        ) from None
    return found

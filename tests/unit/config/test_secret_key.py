"""Where the key is that secrets are sealed with."""

from __future__ import annotations

import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr

from shoal.config.load import load
from shoal.config.secret_key import secret_box, secret_keys
from shoal.config.settings import MASK, Settings
from shoal.errors import BadSettings

KEY = "k" * 40


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def with_key(text: str | None, engine: str = "sqlite:///shoal.db") -> Settings:
    return Settings(engine=engine, secret_key=None if text is None else SecretStr(text))


def test_the_settings_come_first_and_show_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_SECRET_KEY", f"{KEY}, {'o' * 32}")
    settings = load()
    assert secret_keys(settings) == [KEY, "o" * 32]
    assert KEY not in f"{settings!r}{settings}{settings.shown()}"
    assert settings.shown()["secret_key"] == MASK
    monkeypatch.setenv("SHOAL_SECRET_KEY", "0pen-sesame")
    with pytest.raises(BadSettings, match="32 characters") as told:
        secret_box(load()).seal("x", "exit")
    assert "sesame" not in str(told.value)


@pytest.mark.parametrize(
    ("engine", "file"),
    [("sqlite:///shoal.db", "shoal.db.key"), ("postgresql://u@h/d", "state/shoal/secret.key")],
)
def test_without_one_a_file_is_made_once(folder: Path, engine: str, file: str) -> None:
    settings = with_key(None, engine)
    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(lambda _: tuple(secret_keys(settings)), range(8)))
    assert len(found) == 1, "all who come at once have the same"
    assert stat.S_IMODE((folder / file).stat().st_mode) == 0o600
    assert list((folder / file).parent.iterdir()) == [folder / file]
    assert secret_box(settings).open(secret_box(settings).seal("x", "exit"), "exit") == "x"


def test_a_file_that_others_can_read_or_that_is_a_link(folder: Path) -> None:
    file = folder / "shoal.db.key"
    file.write_text(KEY)
    file.chmod(0o644)
    with pytest.raises(BadSettings, match="chmod 600"):
        secret_keys(with_key(None))
    file.chmod(0o600)
    assert secret_keys(with_key(None)) == (KEY,)
    assert secret_keys(with_key(f"file:{file}")) == [KEY]
    file.rename(folder / "elsewhere")
    file.symlink_to(folder / "elsewhere")
    with pytest.raises(BadSettings, match="cannot be read"):
        secret_keys(with_key(None))
    with pytest.raises(BadSettings, match="cannot be read"):
        secret_keys(with_key("file:/nowhere/at/all"))


def test_the_keyring_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    keyring = pytest.importorskip("keyring")
    from support.memory_keyring import MemoryKeyring  # noqa: PLC0415 - needs the extra

    before = keyring.get_keyring()
    keyring.set_keyring(MemoryKeyring())
    try:
        (made,) = secret_keys(with_key("keyring"))
        assert len(made) >= 32
        assert secret_keys(with_key("keyring")) == [made]
        keyring.set_keyring(keyring.backends.fail.Keyring())
        with pytest.raises(BadSettings, match="no keyring"):
            secret_keys(with_key("keyring"))
    finally:
        keyring.set_keyring(before)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(BadSettings, match="pip install"):
        secret_keys(with_key("keyring"))

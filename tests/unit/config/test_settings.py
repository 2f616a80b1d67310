"""Settings: three places, one answer, and one sentence when it cannot be given."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.config.load import load, stray_variables
from shoal.config.settings import Settings, mask_url
from shoal.errors import BadSettings

pytestmark = pytest.mark.usefixtures("own_folder")


def write(text: str) -> None:
    Path("shoal.toml").write_text(text)


def complaint(**given: object) -> str:
    with pytest.raises(BadSettings) as caught:
        load(None, given)
    return str(caught.value)


def test_defaults_hold_when_nothing_is_set() -> None:
    settings = load()
    assert settings.engine == "sqlite:///shoal.db"
    assert settings.concurrency == 64
    assert settings.model_fields_set == set()


def test_each_place_wins_over_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    write('engine = "sqlite:///file.db"\nconcurrency = 5\ncontact = "me@example.org"\n')
    monkeypatch.setenv("SHOAL_ENGINE", "sqlite:///environment.db")
    monkeypatch.setenv("SHOAL_CONCURRENCY", "6")
    settings = load(None, {"concurrency": 7, "contact": None})
    assert settings.engine == "sqlite:///environment.db"
    assert settings.concurrency == 7
    assert settings.contact == "me@example.org"


def test_tables_are_merged_key_by_key(monkeypatch: pytest.MonkeyPatch) -> None:
    write("[scrapers.books]\ndelay = 2\nattempts = 9\n")
    monkeypatch.setenv("SHOAL_SCRAPERS__BOOKS__DELAY", "500ms")
    assert load().overrides("books") == {"delay": 0.5, "attempts": 9}


def test_unset_is_not_default() -> None:
    write("[scrapers.books]\ndelay = 1.0\n")
    assert load().overrides("books") == {"delay": 1.0}, "set to what happens to be the default is still set"
    assert load().overrides("other") == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('engin = "x"', ["shoal.toml, line 1", "'engin'", "did you mean 'engine'?"]),
        ("\n[scrapers.books]\n\ndeley = 2\n", ["shoal.toml, line 4", "'scrapers.books.deley'", "'delay'"]),
        ("[lanes.priority]\ntl = 2\n", ["shoal.toml, line 2", "'lanes.priority.tl'", "'ttl'"]),
        ("zebra = 1", ["there is no setting 'zebra'", "known are", "engine"]),
        ("concurrency = 0", ["line 1", "concurrency = 0 cannot be used", "greater than or equal to 1"]),
        ('[scrapers.b]\nmode = "both"', ["line 2", "scrapers.b.mode = 'both'", "'single' or 'distributed'"]),
        ('[scrapers.b]\ndelay = "soon"', ["line 2", "scrapers.b.delay = 'soon'", '"500ms"']),
        ('contact = "nobody"', ["contact = 'nobody'", "an e-mail address or an http(s) URL"]),
        ('engine = "shoal.db"', ["engine = 'shoal.db'", "sqlite:///shoal.db"]),
        ('user_agent = "a\\nb"', ["user_agent", "one line"]),
        ("engine = \n", ["shoal.toml: this is not TOML", "line 1"]),
    ],
)
def test_a_wrong_file_gives_one_sentence_with_the_place(text: str, words: list[str]) -> None:
    write(text)
    said = complaint()
    assert "\n" not in said
    for word in words:
        assert word in said


def test_a_misspelt_variable_is_an_error_and_a_foreign_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_SERVICE_HOST", "10.0.0.1")
    assert load().engine == "sqlite:///shoal.db"
    assert stray_variables() == ["SHOAL_SERVICE_HOST"]
    monkeypatch.setenv("SHOAL_ENGNIE", "sqlite:///x.db")
    assert complaint() == "environment: SHOAL_ENGNIE is not a setting; did you mean SHOAL_ENGINE?"


def test_a_wrong_variable_or_option_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_CONCURRENCY", "many")
    assert complaint().startswith("environment (SHOAL_CONCURRENCY): concurrency = 'many' cannot be used")
    assert complaint(concurrency=-1).startswith("command line (--concurrency): ")
    monkeypatch.delenv("SHOAL_CONCURRENCY")
    monkeypatch.setenv("SHOAL_LANES", "{")
    assert "SHOAL_LANES" in complaint()


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"There is no settings file 'other\.toml'"):
        load(Path("other.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadSettings, match="not UTF-8"):
        load(Path("bytes.toml"))


@pytest.mark.parametrize(
    ("settings", "agent"),
    [
        (Settings(), "Shoal/0.1.0"),
        (Settings(contact="me@example.org"), "Shoal/0.1.0 (+mailto:me@example.org)"),
        (Settings(contact="mailto:me@example.org"), "Shoal/0.1.0 (+mailto:me@example.org)"),
        (Settings(contact="https://example.org/bot"), "Shoal/0.1.0 (+https://example.org/bot)"),
        (Settings(user_agent="Mine/2", contact="me@example.org"), "Mine/2 (+mailto:me@example.org)"),
        (Settings(user_agent="Mine (me@example.org)", contact="me@example.org"), "Mine (me@example.org)"),
    ],
)
def test_the_user_agent_says_whom_to_reach(settings: Settings, agent: str) -> None:
    assert settings.agent == agent


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:secret@db:5432/x", "postgresql://u:***@db:5432/x"),
        ("redis://:p@ss/w@rd@h:1/0", "redis://:***@h:1/0"),
        ("redis://h/0?password=secret&db=1", "redis://h/0?password=***&db=1"),
        ("sqlite:///shoal.db", "sqlite:///shoal.db"),
        ("postgresql://u@db/x", "postgresql://u@db/x"),
    ],
)
def test_passwords_are_never_shown(url: str, shown: str) -> None:
    assert mask_url(url) == shown
    settings = Settings(engine=url)
    for text in (repr(settings), str(settings), str(settings.shown())):
        assert "secret" not in text.replace("secret_key", "")
        assert "w@rd" not in text


def test_a_wrong_engine_is_named_without_its_password() -> None:
    write('concurrency = "postgresql://u:secret@h/x"')
    assert "secret" not in complaint()

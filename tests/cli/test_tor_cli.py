"""What the commands say of leaving by Tor, where no daemon runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from shoal.config.settings import Settings
from shoal.frontier.contract.exits import NewExit
from support.command_line import shoal
from support.working import opened, reader, start_run

URL = "http://x.example/"
OURS = NewExit("tor-myhost-3f9a1c", "tor", ("tor",))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def waiting(folder: Path, exits: Sequence[NewExit] = ()) -> None:
    """One page waits for somebody who leaves by Tor."""

    async def fill() -> None:
        async with opened(folder) as engine:
            await start_run(engine, reader(start=[URL], exits="tor"))
            await engine.exits.put(exits)

    asyncio.run(fill())


def test_tor_is_listed_where_the_settings_speak_of_it(folder: Path) -> None:
    assert "tor" not in shoal("exits", "list").stdout
    (folder / "shoal.toml").write_text('[scrapers.books]\nexits = "tor"\n')
    assert "started by each worker" in shoal("exits", "list").stdout
    waiting(folder, [OURS])
    listed = {exit_["name"]: exit_["address"] for exit_ in json.loads(shoal("exits", "list", "--json").stdout)}
    assert listed == {"direct": "direct", "tor": "tor", OURS.name: "tor"}


def test_tor_is_started_for_a_route_alone(folder: Path) -> None:
    (folder / "shoal.toml").write_text(
        f'[tor]\npath = "tohr"\nfolder = "{folder}/tor"\n[[route]]\nhost = "x.example"\nexits = "tor"\n'
    )
    (folder / "books.py").write_text(
        f"from shoal import Scraper\nbooks = Scraper('books', start=[{URL!r}])\nbooks.page(lambda page: [])\n"
    )
    answer = shoal("run", "books.py")
    assert answer.returncode == 2
    assert "there is no 'tohr' here" in answer.stderr


def test_explain_says_that_nobody_is_there_to_leave_by_tor(folder: Path) -> None:
    waiting(folder)
    assert "No worker that has a Tor daemon ready is running." in shoal("explain", URL).stdout
    waiting(folder, [OURS])
    assert "Tor daemon" not in shoal("explain", URL).stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add", " tor"), 'give a pool `ways = ["tor"]`'),
        (("ban", "tor"), "Each worker has a Tor exit of its own"),
        (("release", "tor"), "Each worker has a Tor exit of its own"),
        (("check", OURS.name, "--url", URL), "`shoal exits check tor` starts another"),
    ],
)
def test_what_cannot_be_done_gets_one_sentence(folder: Path, words: Sequence[str], says: str) -> None:
    waiting(folder, [OURS])
    answer = shoal("exits", *words)
    assert answer.returncode == 2
    assert says in answer.stderr


def test_a_check_says_why_tor_cannot_be_had(folder: Path) -> None:
    (folder / "shoal.toml").write_text(f'[tor]\npath = "tohr"\nfolder = "{folder}/tor"\n')
    answer = shoal("exits", "check", "tor", "--url", URL)
    assert answer.returncode == 1
    assert "there is no 'tohr' here" in answer.stdout


def test_the_doctor_says_what_is_wrong_with_tor(folder: Path) -> None:
    false = folder / "tohr"
    (folder / "shoal.toml").write_text(f'[tor]\npath = "{false}"\n')
    assert _verdict() == ("fail", "not installed")
    false.write_text("#!/bin/sh\necho something else\n")
    false.chmod(0o755)
    assert _verdict() == ("fail", str(false))


def test_lines_for_tor_are_not_shown() -> None:
    assert "hushed" not in repr(Settings.model_validate({"tor": {"torrc": "Socks5ProxyPassword hushed"}}))


def _verdict() -> tuple[str, str]:
    [found] = [each for each in json.loads(shoal("doctor", "--json").stdout) if each["check"] == "tor"]
    return found["verdict"], found["text"]

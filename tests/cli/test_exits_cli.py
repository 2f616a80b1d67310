"""What `shoal exits` answers to wishes that cannot be had, or that concern nobody."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from shoal.core import log_events
from support.command_line import shoal


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert shoal("exits", "add", "http://p1:8080").returncode == 0
    return tmp_path


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("ban", "p1:8080", "--for", "inf"), "'inf' is not a number of seconds, or a text such as"),
        (("ban", "p1:8080", "--for", "1e18"), "'1e18' is not a number of seconds, or a text such as"),
        (("ban", "p1:8080", "--for", "0"), "'0' is not a number of seconds, or a text such as"),
        (("check", "--url", "p1"), "The URL 'p1' was refused"),
        (("add", "http://p1:0"), "its port is no number from 1 to 65535"),
    ],
)
def test_what_cannot_be_done_gets_one_sentence(words: Sequence[str], says: str) -> None:
    answer = shoal("exits", *words)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert says in answer.stderr
    assert "Traceback" not in answer.stderr
    assert log_events.TASK_BROKE not in answer.stderr


@pytest.mark.parametrize("verb", ["ban", "release"])
def test_an_exit_that_nobody_knows_is_said_to_be_unknown(verb: str) -> None:
    """It may be one of another machine, so it is done nevertheless."""
    unknown = "No exit of that name is known"
    answer = shoal("exits", verb, "p2:8080")
    assert (answer.returncode, unknown in answer.stderr) == (0, True)
    for known in ("p1:8080", "direct"):
        answer = shoal("exits", verb, known)
        assert (answer.returncode, unknown in answer.stderr) == (0, False)

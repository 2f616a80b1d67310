"""A line of the log as machines get it, and as people do."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Literal

import pytest
import structlog

from shoal.cli.output.logs import configure_logs
from shoal.config.settings import Settings
from shoal.core import log_events


@pytest.fixture(autouse=True)
def undone() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_machines_get_the_name_of_the_event_and_its_keys(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(Settings(log_format="json"))
    structlog.get_logger("shoal").warning(log_events.STORE_RECOVERED, after="1.2 s", attempts=None)
    line = json.loads(capsys.readouterr().err)
    assert line.pop("timestamp")
    assert line == {"event": "store.recovered", "after": "1.2 s", "level": "warning", "logger": "shoal"}


def test_people_get_its_sentence_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs(Settings(log_format="text"))
    structlog.get_logger("shoal").warning(log_events.STORE_RECOVERED, after="1.2 s", attempts=3)
    logging.getLogger("aiohttp").warning("odd answer")
    ours, theirs = capsys.readouterr().err.splitlines()
    said = "the store answers again [store.recovered] after='1.2 s' attempts=3"
    assert " ".join(ours.split("] ", 1)[1].split()) == said
    assert theirs.split("] ", 1)[1].split() == ["odd", "answer", "[aiohttp]"]


def fail(authorization: str, depth: int) -> None:
    secret_kept_in_a_variable = authorization * 3
    if depth:
        fail(authorization, depth - 1)
    raise ValueError(f"{len(secret_kept_in_a_variable)} is too many: {'x' * 100_000}")


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("logger", ["shoal", "uvicorn.error", "asyncio"])
def test_a_traceback_shows_where_but_no_variables_and_is_bounded(
    capsys: pytest.CaptureFixture[str], form: Literal["text", "json"], logger: str
) -> None:
    configure_logs(Settings(log_format=form))
    for log in (structlog.get_logger(logger), logging.getLogger(logger)):
        try:
            fail("hunter2", 200)
        except ValueError:
            log.exception("y" * 50_000)
        line = capsys.readouterr().err
        assert "in fail" in line
        assert "ValueError" in line
        assert "hunter2" not in line
        assert len(line) < 20_000

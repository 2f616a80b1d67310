"""Calling `shoal` from tests: as the real console script, or faster in this process."""

from __future__ import annotations

import logging
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import NamedTuple

import structlog

from shoal.cli.main import app
from shoal.cli.output.exit_codes import framed

SHOAL = str(Path(sys.executable).with_name("shoal"))


def forget_modules(folder: Path) -> None:
    """Import from this folder anew what has been imported from it."""
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(f"{folder}/"):
            del sys.modules[name]


class Answer(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def script(*arguments: str, given: str | None = None) -> Answer:
    """The console script itself, in a process of its own."""
    done = subprocess.run([SHOAL, *arguments], capture_output=True, text=True, input=given, timeout=120, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


def shoal(*arguments: str) -> Answer:
    """The same in this process. What it imports from a folder of the test and does to logging is undone again."""
    written = BytesIO(), BytesIO()
    out, err = (TextIOWrapper(stream, "utf-8", write_through=True) for stream in written)
    path, root = list(sys.path), logging.getLogger()
    handlers, level = list(root.handlers), root.level
    with redirect_stdout(out), redirect_stderr(err):
        code = framed(app, arguments)
    sys.path[:] = path
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
    if not Path(__file__).is_relative_to(Path.cwd()):  # otherwise Shoal itself would be forgotten
        forget_modules(Path.cwd())
    return Answer(code, written[0].getvalue().decode(), written[1].getvalue().decode())

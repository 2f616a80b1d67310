"""Runs a command for as long as the shop is open, and leaves nothing of it behind."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


async def run_command(command: Sequence[str], url: str) -> int:
    """Run `command` with SHOAL_DEMO_URL set; the exit code is its own (128 + n if signal n ended it).

    It gets a process group of its own, so that a Ctrl-C reaches it exactly once, through us: a scraper takes the
    second one as an order to stop at once. For that it must not read the terminal; other standard inputs it keeps.
    When it has ended, what is left of its group is killed.
    """
    loop = asyncio.get_running_loop()
    process: asyncio.subprocess.Process | None = None
    early: list[signal.Signals] = []

    def pass_on(number: signal.Signals) -> None:
        if process is None:
            early.append(number)
        else:
            _signal_group(process.pid, number)

    for number in _PASSED_ON:
        loop.add_signal_handler(number, pass_on, number)
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env={**os.environ, "SHOAL_DEMO_URL": url},
            stdin=asyncio.subprocess.DEVNULL if sys.stdin is None or sys.stdin.isatty() else None,
            process_group=0,
        )
        for number in early:
            pass_on(number)
        code = await process.wait()
    except OSError as error:
        sys.stderr.write(f"The command {command[0]!r} could not be started: {error.strerror}.\n")
        return 127 if isinstance(error, FileNotFoundError) else 126
    finally:
        if process is not None:
            _signal_group(process.pid, signal.SIGKILL)
        for number in _PASSED_ON:
            loop.remove_signal_handler(number)
    return code if code >= 0 else 128 - code


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)

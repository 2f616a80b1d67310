"""The loop of commands."""

from __future__ import annotations

import subprocess
import sys

from shoal.runs.event_loop import NAME_LOOKUPS

PROGRAM = """
import asyncio, psutil
from shoal.runs.event_loop import in_loop

async def main():
    await asyncio.get_running_loop().getaddrinfo("localhost", 80)
    print(psutil.Process().num_threads())

in_loop(main())
"""


def test_names_that_nobody_answers_for_do_not_hold_up_others() -> None:
    """Lookups cannot be given up: each that hangs has a thread for itself until it ends."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert int(done.stdout) >= NAME_LOOKUPS

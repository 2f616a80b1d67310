"""One program in a process of its own, with what it cost: wall time, CPU time, memory at its peak."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from parts.shared.report import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Cost:
    """What a process cost from start to end, imports included. CPU and memory count its children too."""

    seconds: float
    cpu_seconds: float
    peak_mb: float
    output: str


def run_measured(command: Sequence[str], folder: str, timeout: float) -> Cost:
    """Run `command` in `folder` to its end. Raises BenchmarkError if it fails or takes too long."""
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        too_long = threading.Timer(timeout, process.kill)
        too_long.start()
        try:
            # wait4 and not Popen.wait: only it tells what this one process used.
            _, status, used = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - begin
            process.returncode = os.waitstatus_to_exitcode(status)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            too_long.cancel()
        if process.returncode != 0:
            said = "\n".join(_text(errors).splitlines()[-20:])
            raise BenchmarkError(f"{' '.join(command)} ended with {process.returncode} after {seconds:.0f} s:\n{said}")
        return Cost(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, _text(output))


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()

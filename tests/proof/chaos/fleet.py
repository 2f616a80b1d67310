"""Workers as processes, each in its place: killed, stopped, continued, started again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from shoal.core.clock import SystemClock
from shoal.testing.history import Disturbance, DisturbanceLog
from support.crawling import shoal

PATIENCE = 120.0
"""Seconds in which a worker has to end after SIGTERM."""


class Fleet:
    """So many workers on one run. `ended_by_themselves`: place and exit code of those that nobody had asked to, or
    that did not end well."""

    def __init__(self, folder: Path, size: int, command: list[str | Path], environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._command = command
        self._environment = {**os.environ, **environment}
        self._places: list[subprocess.Popen[bytes] | None] = [None] * size
        self._stopped: dict[int, tuple[int, int]] = {}
        self._told: set[int] = set()
        self._log = DisturbanceLog(folder / "events")
        self._clock = SystemClock()
        self.ended_by_themselves: list[tuple[int, int]] = []

    def start_all(self) -> None:
        for place in range(len(self._places)):
            self.start(place)

    def start(self, place: int) -> None:
        """Put a worker into its place, if none is there."""
        if self.process(place) is not None:
            return
        with (self._folder / f"worker-{place}.log").open("ab") as log:
            self._places[place] = subprocess.Popen(
                shoal(*self._command), cwd=self._folder, env=self._environment, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def process(self, place: int) -> subprocess.Popen[bytes] | None:
        """The worker in a place; None = there is none alive."""
        process = self._places[place]
        if process is None:
            return None
        code = process.poll()
        if code is None:
            return process
        self._places[place] = None
        if process.pid not in self._told or not self._ended_well(process.pid, code):
            self.ended_by_themselves.append((place, code))
        return None

    def kill(self, place: int) -> None:
        """`kill -9`."""
        process = self.process(place)
        if process is None:
            return
        at = self._clock.now()
        process.send_signal(signal.SIGKILL)
        process.wait()
        self._places[place] = None
        self._stopped.pop(place, None)
        self._log.add(Disturbance(at, self._clock.now(), "kill", process.pid))

    def end(self, place: int) -> None:
        """SIGTERM. It is not waited for."""
        process = self.process(place)
        if process is not None and place not in self._stopped and process.pid not in self._told:
            self._told.add(process.pid)
            process.terminate()
            self._log.add(Disturbance(self._clock.now(), self._clock.now(), "end", process.pid))

    def stop(self, place: int) -> None:
        """SIGSTOP, until continued."""
        process = self.process(place)
        if process is not None and place not in self._stopped:
            self._stopped[place] = (process.pid, self._clock.now())
            process.send_signal(signal.SIGSTOP)

    def go_on(self, place: int) -> None:
        """SIGCONT, if it is still the one that was stopped."""
        process = self.process(place)
        stopped = self._stopped.pop(place, None)
        if process is not None and stopped is not None and stopped[0] == process.pid:
            process.send_signal(signal.SIGCONT)
            self._log.add(Disturbance(stopped[1], self._clock.now(), "stop", process.pid))

    def keep_up(self) -> None:
        """All who were stopped go on, all who are gone are started again."""
        for place in range(len(self._places)):
            self.go_on(place)
            self.start(place)

    def dismiss(self) -> list[int]:
        """SIGTERM to all; answers their exit codes. One that does not end is killed, and has the code of that."""
        living = [process for place in range(len(self._places)) if (process := self.process(place)) is not None]
        for place in range(len(self._places)):
            self.go_on(place)
        for process in living:
            if process.pid not in self._told:  # a second signal would mean: at once
                process.terminate()
        codes = []
        for process in living:
            try:
                code = process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
            codes.append(0 if self._ended_well(process.pid, code) else code)
        self._places = [None] * len(self._places)
        return codes

    def _ended_well(self, pid: int, code: int) -> bool:
        """Whether a process that got SIGTERM ended as it should: one that had not opened its store yet just ends."""
        began = any((self._folder / "events").glob(f"*-{pid}-*.jsonl"))
        return code == 0 or (code == -signal.SIGTERM and not began)

    def logs(self) -> str:
        """What the workers said last."""
        return "\n".join(
            f"{file.name}:\n" + "\n".join(file.read_text(errors="replace").splitlines()[-15:])
            for file in sorted(self._folder.glob("worker-*.log"))
        )

"""More processes for one run, watched over by the one that the user started."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from shoal.core.clock import Clock, SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class ChildProcesses:
    """Child processes that do the same work. One that dies is reported and replaced, a few times in all.

    `restarts`: so many times. `pause`: seconds before each. `grace`: seconds that a process is given to end in good
    order when we have no time to wait for it.

    Children are in sessions of their own, so that a Ctrl-C reaches them through us and only once. Each holds the
    other end of a pipe as its standard input: when we are gone, however that came, the pipe ends and they stop.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        size: int,
        report: Callable[[str], None],
        restarts: int = 3,
        what: str = "worker",
        pause: float = 1.0,
        grace: float = 15.0,
        clock: Clock | None = None,
    ) -> None:
        self._command = command
        self._environment = {**os.environ, **environment}
        self._size = size
        self._report = report
        self._restarts = restarts
        self._what = what
        self._pause = pause
        self._grace = grace
        self._clock = clock or SystemClock()
        self._processes: set[asyncio.subprocess.Process] = set()
        self._stopping = False

    async def run(self) -> None:
        """Start all and return when all have ended. Cancelled: they are told to stop, and killed if they do not."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._size):
                group.create_task(self._keep())

    def stop(self) -> None:
        """Ask all to finish what is in flight; none is replaced any more."""
        self._stopping = True
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End all at once."""
        self._stopping = True
        self._send(signal.SIGKILL)

    async def _keep(self) -> None:
        """Keep one process going until it ends well, we stop, or too many have died."""
        while not self._stopping:
            try:
                code = await self._one()
                how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            except OSError as error:  # the machine has no room for another process now
                code, how = 1, f"it could not be started: {error.strerror}"
            if code == 0 or self._stopping:
                return
            if self._restarts <= 0:
                self._report(f"A {self._what} process died ({how}); too many have, so it is not replaced.")
                return
            self._restarts -= 1
            self._report(f"A {self._what} process died ({how}); starting another. Nothing is lost.")
            await self._clock.sleep(self._pause)

    async def _one(self) -> int:
        process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, env=self._environment, start_new_session=True
        )
        self._processes.add(process)
        try:
            if self._stopping:
                process.terminate()
            return await process.wait()
        except asyncio.CancelledError:
            await _end(process, self._grace)
            raise
        finally:
            self._processes.discard(process)

    def _send(self, number: signal.Signals) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.send_signal(number)


async def _end(process: asyncio.subprocess.Process, grace: float) -> None:
    """Not orderly if it cannot be, but surely."""
    try:
        with suppress(ProcessLookupError):
            process.terminate()
        await asyncio.wait_for(process.wait(), grace)
    except TimeoutError:
        process.kill()
        await process.wait()

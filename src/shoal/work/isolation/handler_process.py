"""A handler process, as its worker sees it: started, handed a page, and killed when it does not answer."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Self

import msgspec

from shoal.errors import BadScraper
from shoal.work.isolation.messages import LENGTH, MOST_BYTES, Hello, PageRead, PageWork, Ready, framed
from shoal.work.task.failure_report import is_of_a_library
from shoal.work.task.handler_failure import FailureKind, HandlerFailure

START_WITHIN = 60.0
"""Seconds in which a process has to have loaded its scrapers, on a machine that is busy with other things."""

OVERTIME = 3.0
"""Seconds after which a process that should have ended itself is killed."""

MOST_REPORTED = 64 * 1024

_STEP = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)
_read = msgspec.msgpack.Decoder(PageRead)
_ready = msgspec.msgpack.Decoder(Ready)
_object = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(slots=True, eq=False)
class HandlerProcess:
    """One process. After anything but an answer it is of no use any more, and `is_over`."""

    hello: Hello
    _process: asyncio.subprocess.Process
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _report: IO[bytes]
    pages: int = 0
    is_over: bool = False

    @classmethod
    async def start(cls, hello: Hello) -> Self:
        """Raises BadScraper if it cannot load its scrapers."""
        ours, theirs = socket.socketpair()
        report = tempfile.TemporaryFile()  # noqa: SIM115 - until it is closed
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "shoal.work.isolation.child", str(theirs.fileno()), str(report.fileno())),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=(theirs.fileno(), report.fileno()),
            env=_environment(),
            start_new_session=True,
        )
        theirs.close()
        reader, writer = await asyncio.open_connection(sock=ours)
        made = cls(hello, process, reader, writer, report)
        try:
            async with asyncio.timeout(START_WITHIN):
                ready = _ready.decode(await made._exchange(framed(hello)))
        except (EOFError, OSError, TimeoutError, msgspec.MsgspecError) as error:
            await made.kill()
            raise BadScraper("A process for handlers did not start; see what it printed.") from error
        except BaseException:
            await made.kill()
            raise
        if ready.problem is not None:
            await made.kill()
            raise BadScraper(f"A process for handlers could not load them: {ready.problem}")
        return made

    async def read(self, work: PageWork) -> PageRead | HandlerFailure:
        """Have a page read. Cancelled, the process is killed."""
        self.pages += 1
        self.is_over = True
        try:
            async with asyncio.timeout(self.hello.timeout + OVERTIME):
                answer = _read.decode(await self._exchange(framed(work)))
                for item in answer.items:
                    _object.decode(item)
        except TimeoutError:
            await self.kill()
            return _stopped(self._too_long)
        except (EOFError, OSError):
            return await self._died()
        except (msgspec.MsgspecError, ValueError) as error:
            await self.kill()
            return _stopped(f"its process gave an answer that cannot be used: {error}")
        except BaseException:
            await self.kill()
            raise
        if answer.failure is None or answer.failure.name != MemoryError.__name__:
            self.is_over = False
        return answer

    async def kill(self) -> int:
        """End it at once. Answers how it ended, or had ended before: as `returncode` of a process."""
        self.is_over = True
        with suppress(ProcessLookupError):
            self._process.kill()
        self._writer.close()
        code = await self._process.wait()
        self._report.close()
        return code

    async def _exchange(self, message: bytes) -> bytes:
        self._writer.write(message)
        await self._writer.drain()
        (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
        if length > MOST_BYTES:
            raise ValueError(f"it is larger than {MOST_BYTES // 2**20} MiB")
        return await self._reader.readexactly(length)

    @property
    def _too_long(self) -> str:
        return f"took longer than {self.hello.timeout:g} s and was stopped"

    async def _died(self) -> HandlerFailure:
        """It has hung up. If it was because its time was over, it has told where it stood."""
        with suppress(TimeoutError):
            async with asyncio.timeout(OVERTIME):
                await self._process.wait()
        report = os.pread(self._report.fileno(), MOST_REPORTED, 0).decode("utf-8", "replace")
        code = await self.kill()
        if report:
            return _stopped(self._too_long, _place_in(report))
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return _stopped(f"its process has died ({how})")


def _stopped(text: str, detail: str | None = None) -> HandlerFailure:
    return HandlerFailure(FailureKind.STOPPED, FailureKind.STOPPED, text, None, detail)


def _place_in(report: str) -> str | None:
    """Where the user's own code stood, innermost first."""
    for file, line, name in _STEP.findall(report):
        if not is_of_a_library(file):
            return f"{os.path.basename(file)}:{line} in {name}"  # noqa: PTH119 - a name is all that is wanted
    return None


def _environment() -> dict[str, str]:
    """That of the worker, without its settings: the address of the store and its password are none of its business."""
    return {name: value for name, value in os.environ.items() if not name.startswith("SHOAL_")}

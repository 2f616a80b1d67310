"""A Tor daemon of our own: started with its own ports and folder, and gone when we are, however we go.

Two things see to that: the control connection owns the daemon, which ends as soon as the connection does; and the
daemon is told our process id, and looks every few seconds whether we are still there.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import shutil
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections import deque
from contextlib import suppress
from pathlib import Path

import structlog

from shoal.core import log_events
from shoal.core.clock import Clock, SystemClock
from shoal.core.exit_address import TorOptions
from shoal.errors import TorFailed
from shoal.fetch.tor.control_port import ControlError, ControlPort

LOOK_EVERY = 0.1
"""Seconds between two looks at a daemon that is starting."""

SAY_EVERY = 10.0
"""Seconds after which a start that is still under way is spoken of again."""

END_WITHIN = 5.0
"""Seconds that a daemon is given to end in good order."""

CONTROL_PORT, CONTROL_COOKIE = "control-port", "control-cookie"
"""Files in the daemon's folder by which it is found and asked."""

_PROGRESS = re.compile(r'PROGRESS=(\d+).*?SUMMARY="([^"]*)"')
_COMPLAINT = re.compile(r'WARNING="([^"]*)"')
_SAID = re.compile(r"\[(\w+)\] (.*)")

log = structlog.get_logger("shoal")


def find_tor(path: str) -> str:
    """The program. Raises TorFailed if there is none."""
    found = shutil.which(path) or shutil.which(path, path="/usr/local/sbin:/usr/sbin:/sbin:/opt/homebrew/bin")
    if found is None:
        raise TorFailed(
            f"Leaving by Tor needs the program tor, and there is no {path!r} here. Install it (Debian: apt-get install "
            "tor), or say where it is: `path` of [tor] in shoal.toml."
        )
    return found


class TorDaemon:
    """One daemon in one folder. `port`: where its SOCKS proxy listens on 127.0.0.1, once launched.

    May be launched again after it has ended.
    """

    def __init__(self, options: TorOptions, folder: Path, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._options = options
        self._folder = folder
        self._process: Process | None = None
        self._control: ControlPort | None = None
        self._reading: asyncio.Task[None] | None = None
        self._last_words: deque[str] = deque(maxlen=20)
        self._next_identity = -math.inf
        self.port = 0

    async def start(self) -> None:
        """Launch it and wait until it can be used. Raises TorFailed with tor's last words; then it has ended."""
        try:
            await self.launch()
            await self.bootstrap()
        except BaseException:
            await self.stop()
            raise

    async def launch(self) -> None:
        """Start the process and take it over. Its ports answer then; nothing gets through yet. Raises TorFailed."""
        program = find_tor(self._options.path)
        try:
            await self._spawn(program)
        except OSError as error:
            raise TorFailed(f"tor cannot be started in {self._folder} ({error.strerror}).") from None
        try:
            async with asyncio.timeout(self._options.bootstrap_timeout):
                self._control = await ControlPort.open(*await self._way_to_control(), self._options.answer_within)
                await self._control.ask("TAKEOWNERSHIP")
                listeners = await self._control.get("net/listeners/socks")
        except TimeoutError:
            raise TorFailed(f"tor does not open its control port. {self._last_message}") from None
        except ControlError as error:
            raise TorFailed(f"tor cannot be controlled: {error}. {self._last_message}") from None
        found = re.search(r"127\.0\.0\.1:(\d+)", listeners)
        if found is None:
            raise TorFailed("tor opens no SOCKS port. Look for `DisableNetwork` or `SocksPort` in `torrc` of [tor].")
        self.port = int(found[1])

    async def _spawn(self, program: str) -> None:
        data, ports, cookie = self._folder / "data", self._folder / CONTROL_PORT, self._folder / CONTROL_COOKIE
        data.mkdir(mode=0o700, exist_ok=True)
        ports.unlink(missing_ok=True)
        cookie.unlink(missing_ok=True)
        lines = self._folder / "torrc"
        lines.write_text(f"{self._options.torrc}\n")
        none = self._folder / "no-defaults"
        ours = {
            "DataDirectory": data,
            "SocksPort": "auto",
            "ControlPort": "auto",
            "ControlPortWriteToFile": ports,
            "CookieAuthentication": 1,
            "CookieAuthFile": cookie,
            "ClientOnly": 1,
            "RunAsDaemon": 0,
            "Log": "notice stdout",
            "__OwningControllerProcess": os.getpid(),
        }
        words = [str(word) for option, value in ours.items() for word in (f"--{option}", value)]
        # In a session of its own: a Ctrl-C is for us, and what is in flight still needs the daemon.
        self._process = await asyncio.create_subprocess_exec(
            program, "-f", str(lines), "--defaults-torrc", str(none), "--ignore-missing-torrc", *words,
            stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True,
        )  # fmt: skip
        self._last_words.clear()
        self._next_identity = -math.inf
        self._reading = asyncio.create_task(self._listen(self._process))

    async def bootstrap(self) -> None:
        """Wait until it has a way into its network. Raises TorFailed."""
        seconds = self._options.bootstrap_timeout
        progress, doing = "0", "starting"
        speak_at = self._seconds() + SAY_EVERY
        try:
            async with asyncio.timeout(seconds):
                while progress != "100":
                    phase = await self._ask_progress()
                    if phase != (progress, doing):
                        progress, doing = phase
                        log.info(log_events.TOR_STARTING, progress=f"{progress} %", doing=doing)
                    if self._seconds() >= speak_at and progress != "100":
                        speak_at += SAY_EVERY
                        log.warning(log_events.TOR_DELAYED, progress=f"{progress} %", doing=doing)
                    await self._clock.sleep(0 if progress == "100" else LOOK_EVERY)
        except TimeoutError:
            raise TorFailed(
                f"tor has found no way into its network within {seconds:g} s; it is at {progress} % ({doing}). "
                f"{self._last_message} See whether this machine may reach the Tor network, or raise "
                "`bootstrap_timeout` of [tor]."
            ) from None

    async def works(self) -> bool:
        """Whether the daemon lives and has circuits: if not, what failed through it is its own failure.

        One that does not answer is of no use to anybody, and is ended.
        """
        control, process = self._control, self._process
        if control is None or process is None:
            return False
        try:
            return await control.get("status/circuit-established") == "1"
        except ControlError:
            if control.is_lost and process.returncode is None:
                process.kill()
            return False

    async def new_identity(self) -> None:
        """Other circuits for all connections from now on, as soon as Tor allows. Raises TorFailed if that fails."""
        while (wait := self._next_identity - self._seconds()) > 0:  # timers may fire early
            await self._clock.sleep(wait)
        if self._control is None:
            raise TorFailed("tor is not running.")
        try:
            await self._control.ask("SIGNAL NEWNYM")
        except ControlError as error:
            raise TorFailed(f"tor gives no new identity: {error}.") from None
        self._next_identity = self._seconds() + self._options.identity_pause

    async def ended(self) -> str:
        """Wait until the process is gone. Answers its last words."""
        if self._process is not None:
            await self._process.wait()
        if self._reading is not None:
            await self._reading
        return self._last_message

    async def stop(self) -> None:
        """End it and wait for that. The second time: nothing."""
        process, self._process = self._process, None
        control, self._control = self._control, None
        if control is not None:
            control.close()
        if process is not None:
            with suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), END_WITHIN)
            except TimeoutError:
                process.kill()
                await process.wait()
        if self._reading is not None:
            await self._reading
            self._reading = None

    async def _way_to_control(self) -> tuple[int, bytes]:
        """The port that tor has chosen and the secret that opens it, from the files that it writes them to."""
        while (found := _port_and_cookie(self._folder)) is None:
            await self._must_live()
            await self._clock.sleep(LOOK_EVERY / 5)
        return found

    async def _ask_progress(self) -> tuple[str, str]:
        await self._must_live()
        try:
            assert self._control is not None  # noqa: S101 - launched
            phase = await self._control.get("status/bootstrap-phase")
        except ControlError as error:
            await self._clock.sleep(LOOK_EVERY)
            await self._must_live()
            raise TorFailed(f"tor cannot be controlled: {error}. {self._last_message}") from None
        complaint, found = _COMPLAINT.search(phase), _PROGRESS.search(phase)
        if complaint:
            self._last_words.append(complaint[1])
        return (found[1], found[2]) if found else ("0", "starting")

    def _seconds(self) -> float:
        return self._clock.elapsed() / 1000

    async def _must_live(self) -> None:
        if self._process is not None and self._process.returncode is not None:
            raise TorFailed(f"tor has ended by itself (exit code {self._process.returncode}). {await self.ended()}")

    async def _listen(self, process: Process) -> None:
        """Read what it says, all of it: a full pipe would stop it."""
        assert process.stdout is not None  # noqa: S101 - it was given a pipe
        while True:
            try:
                line = await process.stdout.readline()
            except ValueError:  # longer than any buffer
                continue
            if not line:
                return
            found = _SAID.search(line.decode(errors="replace"))
            if found and found[1] in ("warn", "err"):
                self._last_words.append(found[2].strip())

    @property
    def _last_message(self) -> str:
        """The last complaint that says something, as a sentence."""
        empty = ("see warnings above", "running Tor as root", "giving Tor only an IP address")
        telling = [words for words in self._last_words if not any(phrase in words for phrase in empty)]
        return f"Its last message: {telling[-1].rstrip('.!')}." if telling else "It did not say why."


def _port_and_cookie(folder: Path) -> tuple[int, bytes] | None:
    with suppress(FileNotFoundError):
        found = re.fullmatch(r"PORT=127\.0\.0\.1:(\d+)\s*", (folder / CONTROL_PORT).read_text())
        secret = (folder / CONTROL_COOKIE).read_bytes()
        return (int(found[1]), secret) if found and secret else None
    return None

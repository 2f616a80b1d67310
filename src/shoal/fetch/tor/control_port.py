"""Tor's control port, as far as Shoal speaks it: one command, one reply, a handful of commands.

By hand, because there is so little of it: the library for it (stem) works with threads beside the event loop, and has
had nothing but mending for years.
"""

from __future__ import annotations

import asyncio


class ControlError(Exception):
    """Tor has refused a command, or nobody answers any more."""


class ControlPort:
    """A connection to a daemon, authenticated. Not for two commands at once: the second waits for the first.

    `within`: seconds for one reply.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, within: float) -> None:
        self._within = within
        self._reader = reader
        self._writer = writer
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, port: int, cookie: bytes, within: float = 30.0) -> ControlPort:
        """Connect to a port of this machine and show the cookie. Raises ControlError."""
        try:
            control = cls(*await asyncio.open_connection("127.0.0.1", port), within)
        except OSError as error:
            raise ControlError(f"its control port cannot be reached ({error.strerror})") from None
        try:
            await control.ask(f"AUTHENTICATE {cookie.hex()}")
        except BaseException:
            control.close()
            raise
        return control

    async def ask(self, command: str) -> list[str]:
        """Send a command and wait for its reply: its lines without their status. Raises ControlError.

        Cancelled, it still hears the reply out: the next question must not get the answer to this one.
        """
        asking = asyncio.ensure_future(self._ask(command))
        asking.add_done_callback(_heed)
        return await asyncio.shield(asking)

    async def _ask(self, command: str) -> list[str]:
        async with self._turn:
            try:
                async with asyncio.timeout(self._within):
                    self._writer.write(f"{command}\r\n".encode())
                    await self._writer.drain()
                    return await self._reply()
            except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
                self.close()  # what would come now is the answer to an older question
                raise ControlError("its control port does not answer") from None

    async def get(self, key: str) -> str:
        """One piece of information. Raises ControlError, also if there is no such thing."""
        prefix = f"{key}="
        for line in await self.ask(f"GETINFO {key}"):
            if line.startswith(prefix):
                return line.removeprefix(prefix)
        raise ControlError(f"it does not say {key}")

    @property
    def is_lost(self) -> bool:
        """Whether nothing can be asked any more."""
        return self._writer.is_closing()

    def close(self) -> None:
        """Hang up; a daemon that we own ends. The second time: nothing."""
        self._writer.close()

    async def _reply(self) -> list[str]:
        """Lines are `250-more`, `250+more` with a text up to a lone dot, and `250 last`. Raises ControlError."""
        lines: list[str] = []
        while True:
            line = (await self._reader.readuntil(b"\r\n")).decode(errors="replace")[:-2]
            status, kind, text = line[:3], line[3:4], line[4:]
            if not status.startswith("2"):
                raise ControlError(f"it refuses: {text}")
            lines.append(text)
            if kind == "+":
                while (part := (await self._reader.readuntil(b"\r\n")).decode(errors="replace")[:-2]) != ".":
                    lines.append(part)
            elif kind == " ":
                return lines


def _heed(asked: asyncio.Future[list[str]]) -> None:
    """Nobody may be left to hear how it went."""
    if not asked.cancelled():
        asked.exception()

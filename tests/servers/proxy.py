"""A TCP proxy between a client and a server, in a thread of its own, that can break what goes through it.

with running_proxy(server.port) as proxy:
    url = f"redis://127.0.0.1:{proxy.port}/0"
    proxy.cut()       # reset all connections (RST); new ones go through
    proxy.refuse()    # reset all connections, and new ones at once, until resume()
    proxy.stall()     # swallow all bytes of old and new connections in silence, until resume()
    proxy.resume()    # new connections go through again; stalled ones stay half-open, as lost packets do
    proxy.lose_answer(to=b"EVALSHA")    # deliver the next request that contains this, and reset when it is answered
    proxy.lose_answer(to=b"EVALSHA", silently=True)    # the same without a reset: the client waits on
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine, Iterator
from enum import StrEnum
from typing import Any

AT_ONCE = 1 << 16
_RESET = struct.pack("ii", 1, 0)


class Way(StrEnum):
    """What happens to new connections and to the bytes of those that are open."""

    OPEN = "open"
    REFUSING = "refusing"
    STALLED = "stalled"


class Pair:
    """One connection of a client, and the one to the server that was made for it. `server` is None until it stands."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.client = client
        self.server: asyncio.StreamWriter | None = None
        self.stalled = False
        self.lose_answer = False

    def reset(self) -> None:
        """Both ends see that the connection is gone, at once and without a goodbye."""
        for end in (self.client, self.server):
            if end is not None:
                _reset(end)

    def reset_client(self) -> None:
        """Only the client sees it; the server goes on for as long as it likes."""
        _reset(self.client)


class Proxy:
    """Listens on `port` of 127.0.0.1 and passes on to the port of the server. Any thread may call its methods.

    `connections`: how many have come so far. `lost`: how many answers were lost on purpose.
    """

    def __init__(self, server_port: int) -> None:
        self.server_port = server_port
        self.port = 0
        self.connections = 0
        self.lost = 0
        self._way = Way.OPEN
        self._pairs: set[Pair] = set()
        self._lose: bytes | None = None
        self._silently = False
        self._answer_lost = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def start(self) -> None:
        """Begin to listen, on a port that is free."""
        self._thread.start()
        self._wait_for(self._listen())

    def stop(self) -> None:
        """End, and reset what is open."""
        self._wait_for(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> None:
        """Reset all open connections (RST on both sides). New ones go through."""
        self._wait_for(self._set(Way.OPEN, reset=True))

    def refuse(self) -> None:
        """Reset all open connections, and each new one, until `resume`."""
        self._wait_for(self._set(Way.REFUSING, reset=True))

    def stall(self) -> None:
        """Swallow all bytes, both ways, of connections old and new, until `resume`. Nobody is told."""
        self._wait_for(self._set(Way.STALLED, reset=False))

    def resume(self) -> None:
        """New connections go through again. Those that were stalled stay half-open: what was swallowed is gone."""
        self._wait_for(self._set(Way.OPEN, reset=False))

    def lose_answer(self, to: bytes = b"", *, silently: bool = False) -> None:
        """Deliver the next request that contains `to`; when its answer comes, throw it away and reset the client.

        `silently`: the client is not told.
        """
        self._answer_lost.clear()
        self._silently = silently
        self._lose = to

    def wait_for_loss(self, seconds: float = 20.0) -> None:
        """Return when the answer that was to be lost is lost."""
        if not self._answer_lost.wait(seconds):
            raise TimeoutError(f"no answer was lost within {seconds} s")

    # In the loop of the proxy

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _end(self) -> None:
        """Connections that are just being accepted are served to their end, too."""
        self._server.close()
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await self._set(Way.REFUSING, reset=True)
            await asyncio.wait(others, timeout=0.05)
        await asyncio.sleep(0.01)  # for transports to close what was aborted

    async def _set(self, way: Way, *, reset: bool) -> None:
        self._way = way
        for pair in list(self._pairs):
            if reset:
                pair.reset()
            elif way is Way.STALLED:
                pair.stalled = True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        pair = Pair(writer)
        if self._way is Way.REFUSING:
            pair.reset()
            return
        pair.stalled = self._way is Way.STALLED
        self._pairs.add(pair)
        try:
            if pair.stalled:
                await _swallow(reader)
                return
            from_server, pair.server = await asyncio.open_connection("127.0.0.1", self.server_port)
            await asyncio.gather(self._pass_on(pair, reader), self._bring_back(pair, from_server))
        except OSError:
            pass
        finally:
            self._pairs.discard(pair)
            pair.reset()

    async def _pass_on(self, pair: Pair, reader: asyncio.StreamReader) -> None:
        assert pair.server is not None
        before = b""
        while data := await reader.read(AT_ONCE):
            if pair.stalled:
                continue
            if self._lose is not None and self._lose in before + data:
                self._lose, pair.lose_answer = None, True
            before = data[-64:]
            pair.server.write(data)
            await pair.server.drain()
        pair.server.close()

    async def _bring_back(self, pair: Pair, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(AT_ONCE):
            if pair.stalled:
                continue
            if pair.lose_answer:
                self.lost += 1
                if not self._silently:
                    pair.reset_client()
                self._answer_lost.set()
                await _swallow(reader)
                return
            pair.client.write(data)
            await pair.client.drain()
        if not pair.stalled:
            pair.client.close()

    def _wait_for(self, act: Coroutine[Any, Any, None]) -> None:
        """Have it done in the loop, and return when it is done."""
        asyncio.run_coroutine_threadsafe(act, self._loop).result(120)


async def _swallow(reader: asyncio.StreamReader) -> None:
    with contextlib.suppress(OSError):
        while await reader.read(AT_ONCE):
            pass


def _reset(writer: asyncio.StreamWriter) -> None:
    """RST instead of FIN, and what is still on its way is thrown away."""
    connection: socket.socket | None = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


@contextlib.contextmanager
def running_proxy(server_port: int) -> Iterator[Proxy]:
    """A proxy for as long as the block runs."""
    proxy = Proxy(server_port)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()

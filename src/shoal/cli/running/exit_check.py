"""One request by each exit, for `shoal exits check`."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from shoal.config.pools import tor_from
from shoal.core.exit_address import TOR, ExitAddress, parse_exit
from shoal.errors import TorFailed
from shoal.fetch.exit_connections import ExitConnections, open_exit
from shoal.fetch.http import HttpFetcher
from shoal.fetch.protocol import Fetch, FetchError
from shoal.fetch.tor.daemon import TorDaemon
from shoal.fetch.tor.data_folder import take_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from shoal.config.settings import Settings
    from shoal.frontier.contract.exits import ExitRecord

AT_ONCE = 50


class ExitCheck:
    """`seconds`: for each request. A Tor daemon has its own time to start, and ends with the check."""

    def __init__(self, settings: Settings, url: str, seconds: float) -> None:
        self._settings = settings
        self._url = url
        self._seconds = seconds
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._addresses: dict[str, ExitAddress] = {}

    async def run(self, records: Sequence[ExitRecord]) -> list[tuple[str, bool, str]]:
        """For each exit: its name, whether it works, and what was answered."""
        self._addresses = {record.name: parse_exit(record.address) for record in records}
        async with AsyncExitStack() as stack:
            fetcher = HttpFetcher(self._settings.agent, exits=self._way)
            stack.push_async_callback(fetcher.close)
            return list(await asyncio.gather(*(self._try(record.name, fetcher, stack) for record in records)))

    async def _try(self, name: str, fetcher: HttpFetcher, stack: AsyncExitStack) -> tuple[str, bool, str]:
        async with self._turns:
            try:
                if self._addresses[name].scheme == TOR:
                    self._addresses[name] = await self._start_tor(stack)
                response = await fetcher.fetch(Fetch(self._url, timeout=self._seconds, exit=name), lambda: None)
            except FetchError as error:
                return name, False, error.text
            except TorFailed as error:
                return name, False, str(error)
            return name, response.status < 400, f"HTTP {response.status}"

    async def _start_tor(self, stack: AsyncExitStack) -> ExitAddress:
        options = tor_from(self._settings)
        folder = take_folder(options.folder)
        stack.callback(folder.close)
        daemon = TorDaemon(options, folder.path)
        await daemon.start()
        stack.push_async_callback(daemon.stop)
        return ExitAddress("socks5", "127.0.0.1", daemon.port)

    def _way(self, name: str, guarded: bool) -> ExitConnections:
        return open_exit(self._addresses[name])

"""What `shoal serve` does: a gateway in this process, or several in others, and workers beside them if wanted."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli.output.exit_codes import INTERRUPTED, OK, say
from shoal.cli.running.child_processes import ChildProcesses
from shoal.cli.running.find_store import opened_store
from shoal.cli.running.interrupt import interruptible
from shoal.cli.running.worker_process import when_stdin_ends
from shoal.core.clock import millis
from shoal.errors import UsageError
from shoal.fetch.guard.rules import Guard
from shoal.gateway.limits.keys import stored_keys
from shoal.gateway.metrics import SHARED_FOLDER
from shoal.gateway.options import GatewayOptions
from shoal.gateway.server import GatewayProcess, listening
from shoal.runs.worker_options import worker_options
from shoal.work.exits.exit_registry import DIRECTLY

if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence

    from shoal.api.scraper import Scraper
    from shoal.config.settings import Settings
    from shoal.frontier.contract.jobs import Store
    from shoal.runs.command_line import CommandLine

RESTARTS = 1_000_000
"""A service goes on, however often a part of it dies."""


class ServeAtTerminal:
    """One call of `shoal serve`. `line`: how other processes find the settings and the store."""

    def __init__(
        self,
        settings: Settings,
        scrapers: Sequence[Scraper],
        targets: Sequence[str],
        line: CommandLine,
        *,
        with_workers: bool,
        share_port: bool,
        until_eof: bool,
        quiet: bool,
    ) -> None:
        self._settings = settings
        self._scrapers = scrapers
        self._targets = targets
        self._line = line
        self._with_workers = with_workers
        self._share_port = share_port
        self._until_eof = until_eof
        self._quiet = quiet
        static = settings.serve.static
        if static is not None and not Path(static).is_dir():
            raise UsageError(f"There is no folder {static!r} to serve files from (`--static`, `serve.static`).")

    async def run(self) -> int:
        """Serve until stopped; answers the exit code."""
        serve = self._settings.serve
        several = serve.processes > 1
        at = self._bound(shared=several or self._share_port)
        port = at.getsockname()[1]
        with tempfile.TemporaryDirectory(prefix="shoal-metrics-") as folder:
            groups = []
            if several:
                command = [
                    *self._child("serve"),
                    "--host",
                    serve.host,
                    "--port",
                    str(port),
                    "--processes",
                    "1",
                    "--share-port",
                    *(["--static", serve.static] if serve.static is not None else []),
                    *(["--without-keys"] if serve.without_keys else []),
                ]
                groups.append(self._children(command, serve.processes, "gateway", {SHARED_FOLDER: folder}))
            if self._with_workers:
                groups.append(self._children(self._child("worker"), serve.workers, "worker", {}))
            try:
                return await self._serve(None if several else at, port, groups)
            finally:
                at.close()

    async def _serve(self, at: socket.socket | None, port: int, groups: list[ChildProcesses]) -> int:
        """In this process, if `at` is given; and whatever the groups do. Announced when the store is open."""
        async with opened_store(self._settings) as store:
            await self._check_keys(store)
            if not self._quiet:
                self._announce(self._settings.serve.host, port)
            gateway = GatewayProcess(store, self._scrapers, options_from(self._settings)) if at is not None else None
            tasks: list[asyncio.Task[None]] = []

            def drain() -> None:
                for children in groups:
                    children.stop()
                if gateway is not None:
                    gateway.stop()

            def force() -> None:
                for children in groups:
                    children.kill()
                if gateway is not None:
                    gateway.abort()

            if self._until_eof:
                when_stdin_ends(drain)
            with interruptible(drain, force) as interruption:
                async with asyncio.TaskGroup() as group:
                    tasks += [group.create_task(children.run()) for children in groups]
                    if gateway is not None and at is not None:
                        tasks.append(group.create_task(gateway.run(at)))
            return INTERRUPTED if interruption.forced else OK

    async def _check_keys(self, store: Store) -> None:
        """Raise UsageError if whoever can reach this machine could use it, and nobody has said that this is meant."""
        serve = self._settings.serve
        if is_this_machine(serve.host) or await stored_keys(store.registry):
            return
        if not serve.without_keys:
            raise UsageError(
                f"There is no API key, and anybody who can reach {serve.host} could submit jobs. Make a key with "
                "`shoal keys create NAME`, or say that this is meant with --without-keys (`serve.without_keys`)."
            )
        if not self._quiet:
            say(f"Warning: there is no API key. Anybody who can reach {serve.host} may submit jobs and see results.")

    def _bound(self, *, shared: bool) -> socket.socket:
        serve = self._settings.serve
        try:
            return listening(serve.host, serve.port, shared=shared)
        except OSError as error:
            raise UsageError(f"Cannot listen at {serve.host}, port {serve.port}: {error.strerror}.") from None

    def _child(self, command: str) -> list[str]:
        config = () if self._line.config is None else ("--config", self._line.config)
        return [sys.executable, "-m", "shoal", command, *self._targets, *config, "--quiet", "--until-eof"]

    def _children(self, command: Sequence[str], size: int, what: str, more: dict[str, str]) -> ChildProcesses:
        environment = {"SHOAL_ENGINE": self._settings.engine, **more}
        return ChildProcesses(command, environment, size=size, report=say, restarts=RESTARTS, what=what)

    def _announce(self, host: str, port: int) -> None:
        shown = f"[{host}]" if ":" in host else host
        names = ", ".join(scraper.name for scraper in self._scrapers)
        say(f"Serving {names} at http://{shown}:{port} (documentation: /docs). Ctrl-C stops.")
        if not self._with_workers:
            say(f"Jobs wait for workers: {self._line.of('worker', *self._targets)}")


def is_this_machine(host: str) -> bool:
    """Whether nobody but this machine itself can connect to what listens there."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def options_from(settings: Settings) -> GatewayOptions:
    """The settings as a gateway process wants them."""
    serve = settings.serve
    return GatewayOptions(
        results_ttl=serve.results_ttl,
        remember=millis(serve.remember),
        max_body=serve.max_body,
        max_tasks=serve.max_tasks,
        deadline=serve.deadline,
        start_timeout=serve.start_timeout,
        max_wait=serve.max_wait,
        max_queue=serve.max_queue,
        cors=tuple(serve.cors),
        hosts=(*serve.hosts, serve.host),
        worker=worker_options(settings, exits=DIRECTLY),
        webhook_attempts=serve.webhook_attempts,
        guard=Guard(settings.guard.networks),
        static=serve.static,
    )

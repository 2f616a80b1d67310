"""What a benchmark of gateways needs around it: Shoal's gateway, the peer's, workers, a site; each a process."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from parts.shared.private_servers import cpu_seconds_of, family
from parts.shared.report import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import ExitStack

    from parts.shared.private_servers import PrivateServers

    Measure = Callable[[], tuple[float, float]]
    """CPU seconds of the gateway and of its store so far."""

PARTS = Path(__file__).parent
START_WITHIN = 60.0
LISTENING = "0A"
PORTS = (20_000, 32_000)


def empty_store(stack: ExitStack, servers: PrivateServers, kind: str) -> str:
    """The URL of a store with nothing in it."""
    if kind != "sqlite":
        return servers.fresh_database(kind, "gateway")
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-gateway-"))
    return f"sqlite:///{folder}/shoal.db"


def start_site(stack: ExitStack) -> str:
    """The echo. Answers its port."""
    command = [sys.executable, str(PARTS / "echo_site.py")]
    site = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    stack.callback(end, site)
    return site.stdout.readline().strip()


class Gateway:
    """A gateway that listens, on all addresses of loopback."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.process, self.port = process, port

    def cpu_seconds(self) -> float:
        """CPU time of the gateway, all of its processes."""
        return sum(map(cpu_seconds_of, family(self.process.pid)))

    def memory(self) -> float:
        """Bytes that its processes have for themselves."""
        return sum(map(_own_bytes, family(self.process.pid)))


def start_shoal(stack: ExitStack, engine: str, processes: int, site_port: str) -> Gateway:
    """`shoal serve`, as users start it."""
    port = _free_port()
    options = ["--host", "0.0.0.0", "--port", str(port), "--processes", str(processes), "--quiet"]  # noqa: S104 - loopback
    command = [sys.executable, "-m", "shoal", "serve", str(PARTS / "cart_jobs.py"), "--engine", engine, *options]
    return _started(stack, command, port, {"SITE_PORT": site_port, **_allowed()}, processes)


def start_seed(stack: ExitStack, redis_url: str, processes: int) -> Gateway:
    """The peer, by the same server: uvicorn with httptools and uvloop, and nothing logged."""
    port = _free_port()
    command = [
        *(sys.executable, "-m", "uvicorn", "seed_gateway:app", "--app-dir", str(PARTS), "--host", "0.0.0.0"),  # noqa: S104 - loopback
        *("--port", str(port), "--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "error"),
        *("--workers", str(processes)),
    ]
    return _started(stack, command, port, {"REDIS_URL": redis_url})


def start_worker(stack: ExitStack, engine: str, site_port: str) -> subprocess.Popen[bytes]:
    """`shoal worker`."""
    command = [sys.executable, "-m", "shoal", "worker", str(PARTS / "cart_jobs.py"), "--engine", engine, "--quiet"]
    process = subprocess.Popen(
        command, env={**os.environ, "SITE_PORT": site_port, **_allowed()}, stdin=subprocess.DEVNULL
    )
    stack.callback(end, process)
    return process


def run_load(what: str, gateway: Gateway, plan: Sequence[str], seconds: float, measure: Measure) -> dict[str, float]:
    """One measurement by a process of its own; what it prints, and what was spent meanwhile."""
    connections, items, ids = plan
    words = [what, "127.0.0.1", str(gateway.port), connections, str(seconds), items, ids]
    load = subprocess.Popen(
        [sys.executable, str(PARTS / "load.py"), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    if load.stdout.readline() != "ready\n":
        raise BenchmarkError("The load on the gateway could not begin; see above.")
    before = measure()
    said, _ = load.communicate("go\n")
    spent = [after - earlier for after, earlier in zip(measure(), before, strict=True)]
    if load.returncode:
        raise BenchmarkError("The load on the gateway ended with an error; see above.")
    return {**json.loads(said), "gateway_cpu": spent[0], "store_cpu": spent[1]}


def end(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    """Ask a process to end, and see that it does."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _allowed() -> dict[str, str]:
    return {"SHOAL_GUARD__ALLOW_NETWORKS": '["127.0.0.0/8"]'}


def _started(stack: ExitStack, command: Sequence[str], port: int, more: dict[str, str], listeners: int = 1) -> Gateway:
    process = subprocess.Popen(command, env={**os.environ, **more}, stdin=subprocess.DEVNULL)
    stack.callback(end, process)
    until = time.monotonic() + START_WITHIN
    while time.monotonic() < until:
        if process.poll() is not None:
            raise BenchmarkError(f"{' '.join(command[:4])} … has ended; see above.")
        if _listeners(port) >= listeners:
            return Gateway(process, port)
        time.sleep(0.05)
    raise BenchmarkError(f"{' '.join(command[:4])} … does not listen after {START_WITHIN:.0f} seconds.")


def _own_bytes(pid: int) -> float:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return 1024.0 * sum(int(found) for found in re.findall(r"^Private_\w+: +(\d+) kB$", rollup, re.MULTILINE))


def _listeners(port: int) -> int:
    """How many sockets listen on a port: those who share it have one each."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[3] == LISTENING and int(row[1].rpartition(":")[2], 16) == port for row in rows)


def _free_port() -> int:
    """One that the system does not give to clients: between the choice and its use, many of those come and go."""
    while True:
        port = random.randrange(*PORTS)  # noqa: S311 - any will do
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("0.0.0.0", port))  # noqa: S104 - as the gateway will
            return port

"""Private Redis servers for tests: a port of their own, a folder of their own, and nobody minds if they are killed."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.waiting import wait_until

PLACES = ("/usr/bin", "/usr/local/bin", "/usr/sbin", "/opt/redis/bin")
START_WITHIN = 20.0


def find_program(name: str) -> str:
    """Where a program of Redis is. Missing: fails in CI, skips by name elsewhere."""
    found = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), *PLACES)))
    if found is not None:
        return found
    reason = f"{name} is not installed (Debian: apt-get install redis-server)"
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def free_port(*, also: int = 0) -> int:
    """A port that nobody listens on, and with `also`, neither on the one so much higher (as a cluster needs)."""
    while True:
        with contextlib.ExitStack() as stack:
            low = stack.enter_context(socket.socket())
            low.bind(("127.0.0.1", 0))
            port: int = low.getsockname()[1]
            if not also:
                return port
            with contextlib.suppress(OSError, OverflowError):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port + also))
                return port


class RedisServer:
    """One redis-server process. It can be killed and started again on the same port and data."""

    def __init__(self, folder: Path, *options: str, port: int | None = None, program: str = "redis-server") -> None:
        self.folder = folder
        self.port = port or free_port()
        self.options = options
        self.program = program
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def log(self) -> str:
        with contextlib.suppress(OSError):
            return (self.folder / "server.log").read_text()
        return ""

    def start(self) -> None:
        """Start, and wait until it answers PING (which it does only when its data is loaded)."""
        settings = [*self._settings(), *self.options]
        self.process = subprocess.Popen(
            [find_program(self.program), *settings], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        process = self.process

        def answers() -> bool:
            assert process.poll() is None, f"{self.program} ended at once:\n{self.log}"
            return self._answers()

        try:
            wait_until(answers, f"{self.program} answers")
        except AssertionError:
            self.kill()
            raise

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Ask it to end, saving what it has."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """Stop it from running, as a stalled machine would."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def ask(self, *words: str) -> bytes:
        """One command in plain text, without any client library; the raw beginning of the answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(b"*%d\r\n" % len(words))
            for word in words:
                data = word.encode()
                connection.sendall(b"$%d\r\n%s\r\n" % (len(data), data))
            return connection.recv(65536)

    def _settings(self) -> list[str]:
        return [
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)),
            *("--logfile", str(self.folder / "server.log"), "--daemonize", "no", "--save", ""),
            *("--appendonly", "yes", "--appendfsync", "always"),
        ]

    def _answers(self) -> bool:
        with contextlib.suppress(OSError):
            answer = self.ask("PING")
            return answer.startswith((b"+PONG", b"-NOAUTH"))
        return False

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(timeout=120)
            self.process = None


@contextlib.contextmanager
def running_redis(*options: str) -> Iterator[RedisServer]:
    """A server for as long as the block runs. `options` come after the usual ones and override them."""
    with tempfile.TemporaryDirectory(prefix="shoal-redis-") as folder:
        server = RedisServer(Path(folder), *options)
        server.start()
        try:
            yield server
        finally:
            server.kill()


@contextlib.contextmanager
def running_cluster(nodes: int = 3) -> Iterator[list[RedisServer]]:
    """A Redis Cluster of so many masters, without replicas, for as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="shoal-cluster-") as folder, contextlib.ExitStack() as stack:
        servers = []
        for number in range(nodes):
            place = Path(folder) / str(number)
            place.mkdir()
            options = (
                "--cluster-enabled",
                "yes",
                "--cluster-config-file",
                "nodes.conf",
                "--cluster-node-timeout",
                "2000",
            )
            server = RedisServer(place, *options, port=free_port(also=10_000))
            server.start()
            stack.callback(server.kill)
            servers.append(server)
        hosts = [f"127.0.0.1:{server.port}" for server in servers]
        subprocess.run(
            [find_program("redis-cli"), "--cluster", "create", *hosts, "--cluster-replicas", "0", "--cluster-yes"],
            check=True,
            capture_output=True,
            timeout=60,
        )
        wait_until(
            lambda: all(b"cluster_state:ok" in server.ask("CLUSTER", "INFO") for server in servers),
            "the cluster has come together",
        )
        yield servers


@contextlib.contextmanager
def running_sentinel(name: str = "main") -> Iterator[tuple[RedisServer, RedisServer, RedisServer]]:
    """A master, its replica and a sentinel that watches them, for as long as the block runs."""
    with tempfile.TemporaryDirectory(prefix="shoal-sentinel-") as folder, contextlib.ExitStack() as stack:
        places = [Path(folder) / part for part in ("master", "replica", "sentinel")]
        for place in places:
            place.mkdir()
        master = RedisServer(places[0])
        replica = RedisServer(places[1], "--replicaof", "127.0.0.1", str(master.port))
        watcher = Sentinel(places[2])
        watcher.watch(name, master.port)
        for server in (master, replica, watcher):
            server.start()
            stack.callback(server.kill)
        wait_until(
            lambda: b"master_link_status:up" in replica.ask("INFO", "replication") and watcher.knows_replica(name),
            "the replica has found its master, and the sentinel the replica",
        )
        yield master, replica, watcher


class Sentinel(RedisServer):
    """One redis-server in sentinel mode."""

    def watch(self, name: str, port: int) -> None:
        """Write the configuration, which a sentinel needs as a file. It decides alone and fast."""
        lines = [
            f"port {self.port}",
            "bind 127.0.0.1",
            f"dir {self.folder}",
            f"logfile {self.folder / 'server.log'}",
            f"sentinel monitor {name} 127.0.0.1 {port} 1",
            f"sentinel down-after-milliseconds {name} 500",
            f"sentinel failover-timeout {name} 3000",
        ]
        (self.folder / "sentinel.conf").write_text("\n".join(lines) + "\n")

    def knows_replica(self, name: str) -> bool:
        return b"num-slaves\r\n$1\r\n1" in self.ask("SENTINEL", "MASTER", name)

    def _settings(self) -> list[str]:
        return [str(self.folder / "sentinel.conf"), "--sentinel"]

"""A private PostgreSQL for the tests: own folder, own port, durable, and free to be killed."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from support.waiting import wait_until

USER = "shoal"
PLACE = tempfile.gettempdir()
"""Read now: the first test that needs the server may have a place of its own for temporary files."""

SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = '{folder}'
fsync = on
synchronous_commit = on
max_connections = 100
shared_buffers = 128MB
max_wal_size = 2GB
log_min_messages = warning
log_line_prefix = '%m [%p] '
deadlock_timeout = 200ms
"""


def find_programs() -> Path | None:
    """The folder that has `initdb` and `postgres`: on PATH or in Debian's usual place, the newest."""
    on_path = shutil.which("postgres")
    if on_path:
        return Path(on_path).resolve().parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


def need_programs() -> Path:
    """As `find_programs`; a missing server fails in CI and is a named skip on a laptop."""
    programs = find_programs()
    if programs is None:
        message = "PostgreSQL is not installed (Debian: apt-get install postgresql)"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return programs


class PostgresServer:
    """One server in a folder of its own. `url(database)` leads to it, over TCP, as a user without special rights."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="shoal-postgres-", dir=PLACE))
        self._data = self.folder / "data"
        self.port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")

    def create(self) -> None:
        """Make the data folder, start, and make the user and the database of the tests."""
        options = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync"]
        self._run("initdb", *options, "-D", str(self._data))
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(SETTINGS.format(folder=self.folder))
        rules = "local all all trust\nhost all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
        (self._data / "pg_hba.conf").write_text(rules)
        self.start()
        self.sql(f"CREATE ROLE {USER} LOGIN; CREATE DATABASE {USER} OWNER {USER}")

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = self._as_owner([str(self._programs / "postgres"), "-D", str(self._data), "-p", str(self.port)])
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        process = self._process

        def ready() -> bool:
            assert process.poll() is None, f"PostgreSQL did not start:\n{self.log()[-2000:]}"
            return self._try("pg_isready", "-h", "127.0.0.1", "-p", str(self.port), "-q") == 0

        wait_until(ready, "PostgreSQL answers", again=0.05)

    def stop(self, how: str = "fast") -> None:
        """Stop: smart, fast, or immediate (as a crash would, with recovery at the next start)."""
        self._run("pg_ctl", "stop", "-D", str(self._data), "-m", how, "-w")
        self._reap()

    def kill(self) -> None:
        """`kill -9` to the postmaster and all that it started."""
        self._signal(signal.SIGKILL)
        self._reap()

    def pause(self) -> None:
        """Stand still: connections stay open, and new ones are made, but nobody answers."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Go on. Whoever started it as another user stands still together with it."""
        assert self._process is not None
        self._signal(signal.SIGCONT)
        self._process.send_signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        pid = int((self._data / "postmaster.pid").read_text().split()[0])
        children = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
        for process in (pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def restart(self, how: str = "immediate") -> None:
        """Stop and start again."""
        self.stop(how)
        self.start()

    def sql(self, statements: str, *, user: str = "postgres", database: str = "postgres") -> str:
        """Run statements as the superuser, each on its own; answers what psql prints."""
        command = [str(self._programs / "psql"), "-h", "127.0.0.1", "-p", str(self.port), "-U", user, "-d", database]
        parts = [part for statement in statements.split(";") if statement.strip() for part in ("-c", statement)]
        done = subprocess.run(
            [*command, "-v", "ON_ERROR_STOP=1", "-Atq", *parts], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def url(self, database: str = USER, user: str = USER, password: str = "", **options: str) -> str:
        """The engine URL of a database here."""
        secret = f":{password}" if password else ""
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}" + (f"?{query}" if query else "")

    def log(self) -> str:
        """What the server has said so far."""
        return (self.folder / "log").read_text(errors="replace")

    def destroy(self) -> None:
        """Stop, and remove everything."""
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(subprocess.CalledProcessError):
                self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait(timeout=120)

    def _run(self, program: str, *options: str) -> None:
        command = self._as_owner([str(self._programs / program), *options])
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def _try(self, program: str, *options: str) -> int:
        return subprocess.run([str(self._programs / program), *options], check=False, capture_output=True).returncode

    def _as_owner(self, command: list[str]) -> list[str]:
        """PostgreSQL refuses to run as root."""
        return ["runuser", "-u", "postgres", "--", *command] if os.geteuid() == 0 else command


@cache
def shared_server() -> PostgresServer:
    """One server for all tests of this process that do not hurt it. It goes when the process ends."""
    server = PostgresServer(need_programs())
    atexit.register(server.destroy)
    server.create()
    return server


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

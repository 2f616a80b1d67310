"""nginx on loopback, with a configuration of its own: one worker process, keep-alive, open files kept open."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from parts.shared.report import BenchmarkError, progress

if TYPE_CHECKING:
    from collections.abc import Iterator

CONFIGURATION = """
daemon off;
{user}
worker_processes 1;
worker_rlimit_nofile 65536;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 8192; }}
http {{
    types {{ text/html html; }}
    charset utf-8;
    access_log off;
    sendfile on;
    tcp_nopush on;
    tcp_nodelay on;
    keepalive_timeout 600;
    keepalive_requests 10000000;
    open_file_cache max=20000 inactive=600s;
    open_file_cache_valid 600s;
    open_file_cache_min_uses 1;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root "{root}";
    }}
}}
"""


@contextmanager
def serve(root: Path) -> Iterator[str]:
    """Serve `root` until the block ends. Gives the base URL, without a slash at its end."""
    program = _nginx()
    with tempfile.TemporaryDirectory(prefix="shoal-bench-nginx-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        port = _free_port()
        user = f"user {pwd.getpwuid(os.getuid()).pw_name};" if os.getuid() == 0 else ""
        configuration = folder / "nginx.conf"
        configuration.write_text(CONFIGURATION.format(folder=folder, root=root.resolve(), port=port, user=user))
        server = subprocess.Popen([program, "-p", name, "-c", str(configuration)], stderr=subprocess.DEVNULL)
        try:
            _wait_until_up(server, port, folder / "error.log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()


def _nginx() -> str:
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if found:
        return found
    if os.getuid() != 0 or not shutil.which("apt-get"):
        raise BenchmarkError(
            "nginx is needed to serve the site: install it (Debian: apt-get install nginx-light), then rerun."
        )
    progress("installing nginx with apt …")
    _apt("update", "-qq")
    # Debian starts a packaged nginx on port 80 when it is installed; a policy of 101 keeps it from doing so.
    with _no_services():
        _apt("install", "-y", "-qq", "--no-install-recommends", "nginx-light")
    return _nginx()


def _apt(*words: str) -> None:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(["apt-get", *words], stdout=subprocess.DEVNULL, env=environment, check=False)
    if done.returncode != 0:
        raise BenchmarkError("nginx could not be installed with apt (see above): install it by hand, then rerun.")


@contextmanager
def _no_services() -> Iterator[None]:
    policy = Path("/usr/sbin/policy-rc.d")
    if policy.exists():
        yield
        return
    policy.write_text("#!/bin/sh\nexit 101\n")
    policy.chmod(0o755)
    try:
        yield
    finally:
        policy.unlink()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_up(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    give_up = time.monotonic() + 10
    while time.monotonic() < give_up and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    said = log.read_text().strip() if log.exists() else "nothing"
    raise BenchmarkError(f"nginx did not start on port {port}; its log says: {said}")

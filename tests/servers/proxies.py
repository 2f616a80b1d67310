"""Real proxies for the tests: tinyproxy (HTTP) and microsocks (SOCKS5), private, on random ports, with an exit address.

Whatever goes through one reaches the target from `leaves_from`, so that the target's log tells exits apart.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.waiting import wait_until

TINYPROXY = """
Port {port}
Listen 127.0.0.1
Bind {leaves_from}
Timeout 20
MaxClients 200
StartServers 2
LogLevel Error
PidFile "{folder}/pid"
{auth}
"""


def need(program: str, package: str) -> str:
    """The program; a missing one fails in CI and is a named skip on a laptop."""
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if found is None:
        message = f"{program} is not installed (Debian: apt-get install {package})"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return found


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def http_proxy(leaves_from: str = "127.0.0.2", login: tuple[str, str] | None = None) -> Iterator[int]:
    """An HTTP proxy. Gives its port."""
    port, folder = free_port(), Path(tempfile.mkdtemp(prefix="shoal-proxy-"))
    auth = f"BasicAuth {login[0]} {login[1]}" if login else ""
    config = folder / "tinyproxy.conf"
    config.write_text(TINYPROXY.format(port=port, leaves_from=leaves_from, folder=folder, auth=auth))
    command = [need("tinyproxy", "tinyproxy-bin"), "-d", "-c", str(config)]
    try:
        with _running(command, port):
            yield port
    finally:
        shutil.rmtree(folder)


@contextmanager
def socks_proxy(leaves_from: str = "127.0.0.3", login: tuple[str, str] | None = None) -> Iterator[int]:
    """A SOCKS5 proxy. Gives its port."""
    port = free_port()
    command = [need("microsocks", "microsocks"), "-i", "127.0.0.1", "-p", str(port), "-b", leaves_from]
    command += ["-u", login[0], "-P", login[1]] if login else []
    with _running(command, port):
        yield port


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:

        def listens() -> bool:
            assert process.poll() is None, f"{command[0]} has ended by itself"
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_until(listens, f"{command[0]} listens")
        yield
    finally:
        process.kill()
        process.wait()

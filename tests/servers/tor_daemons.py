"""Looking at Tor daemons from outside: who runs, what it is told, whether it listens."""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil

from servers.proxies import free_port
from support.waiting import wait_until


def nobody() -> str:
    """Lines for a daemon that finds nobody to talk to, and does not look beyond loopback."""
    place = f"orport={free_port()} v3ident={'A' * 40} 127.0.0.1:{free_port()} {'B' * 40}"
    return f"TestingTorNetwork 1\nDirAuthority nobody {place}"


class listening:  # noqa: N801 - reads as what it does
    """All signals that a daemon gets while the block runs, heard on a control connection of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._heard = b""

    def __enter__(self) -> Callable[[], list[str]]:
        port, cookie = self._folder / "control-port", self._folder / "control-cookie"
        wait_until(
            lambda: port.exists() and cookie.exists() and cookie.stat().st_size > 0, "the daemon has a control port"
        )
        number = int(port.read_text().rpartition(":")[2])
        self._socket = socket.create_connection(("127.0.0.1", number), timeout=120)
        self._socket.sendall(f"AUTHENTICATE {cookie.read_bytes().hex()}\r\nSETEVENTS SIGNAL\r\n".encode())
        while self._heard.count(b"250 OK") < 2:
            self._heard += self._socket.recv(4096)
        return lambda: re.findall(r"650 SIGNAL (\w+)", self._heard.decode())

    def __exit__(self, *_: object) -> None:
        self._socket.sendall(b"QUIT\r\n")
        while more := self._last_words():
            self._heard += more
        self._socket.close()

    def _last_words(self) -> bytes:
        try:
            return self._socket.recv(4096)
        except ConnectionError:
            return b""


def daemons_in(folder: Path) -> list[int]:
    """Daemons that work in this folder, whoever has started them."""
    return [each.pid for each in psutil.process_iter(["cmdline"]) if _is_daemon(each, f"{folder}/")]


def daemons_of(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Those that this process has started."""
    return [each for each in psutil.Process(process.pid).children() if _is_daemon(each, "")]


def _is_daemon(process: psutil.Process, words: str) -> bool:
    try:
        command = process.cmdline()
    except psutil.Error:
        return False
    return bool(command) and Path(command[0]).name == "tor" and words in " ".join(command)


def speaks_socks(port: int) -> bool:
    """Whether a SOCKS5 proxy listens at this port."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"\x05\x01\x00")
            return connection.recv(2) == b"\x05\x00"
    except ConnectionError:
        return False

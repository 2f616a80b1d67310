"""A Tor network of its own on loopback: one authority and some relays, all of which may leave to loopback.

The authority votes every few seconds. Once its consensus knows all relays, a client is ready within a second or two.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from servers.proxies import free_port, need
from support.waiting import wait_until

RELAYS = 3
"""Besides the authority, which is a relay too. A circuit needs three."""

NETWORK = """
TestingTorNetwork 1
PathsNeededToBuildCircuits 0.25
DirAuthority {authority}
"""

RELAY = """
AssumeReachable 1
TestingV3AuthInitialVotingInterval 5
TestingV3AuthInitialVoteDelay 2
TestingV3AuthInitialDistDelay 2
V3AuthVotingInterval 10
V3AuthVoteDelay 2
V3AuthDistDelay 2
TestingMinExitFlagThreshold 0
ShutdownWaitLength 0
DataDirectory {folder}
Log notice file {folder}/log
Nickname {name}
ContactInfo nobody@example.org
Address 127.0.0.1
ORPort 127.0.0.1:{port}
SocksPort 0
ExitRelay 1
ExitPolicyRejectPrivate 0
ExitPolicy accept *:*
"""

AUTHORITY = """
AuthoritativeDirectory 1
V3AuthoritativeDirectory 1
DirPort 127.0.0.1:{port}
TestingDirAuthVoteExit *
TestingDirAuthVoteGuard *
"""


class TorNetwork:
    """Its processes. `lines`: what a client needs in its torrc."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._running: list[subprocess.Popen[bytes]] = []
        self._began = time.monotonic()
        tor = need("tor", "tor")
        port, door = free_port(), free_port()
        self.lines = NETWORK.format(authority=_authority(tor, base / "authority", port, door))
        for number in range(RELAYS + 1):
            name = f"relay{number}" if number else "authority"
            folder = base / name
            folder.mkdir(mode=0o700, exist_ok=True)
            lines = self.lines + RELAY.format(folder=folder, name=name, port=free_port() if number else port)
            lines += "" if number else AUTHORITY.format(port=door)
            (folder / "torrc").write_text(lines)
            command = [tor, "-f", str(folder / "torrc"), "--defaults-torrc", str(base / "none"), "--quiet"]
            self._running.append(subprocess.Popen([*command, "--ignore-missing-torrc"]))

    def wait(self) -> None:
        """Until the authority has published a consensus in which all relays can be used as exits."""
        authority = self._base / "authority"
        consensus = authority / "cached-microdesc-consensus"

        def published() -> bool:
            assert all(process.poll() is None for process in self._running), (authority / "log").read_text()[-2000:]
            return consensus.exists() and consensus.read_text().count(" Exit Fast ") > RELAYS

        wait_until(published, "all relays are in a consensus", within=240)
        print(f"a Tor network of {RELAYS + 1} relays, {time.monotonic() - self._began:.1f} s after it was started")

    def leaves_to(self, port: int) -> bool:
        """Whether one of the relays has a connection to this port now."""
        return any(has_connection(process.pid, port) for process in self._running)

    def stop(self) -> None:
        for process in self._running:
            process.kill()
        for process in self._running:
            process.wait()


def has_connection(pid: int, port: int) -> bool:
    """Whether a process has a connection to this port."""
    return any(each.raddr and each.raddr.port == port for each in psutil.Process(pid).net_connections("tcp"))


@contextmanager
def tor_network() -> Iterator[TorNetwork]:
    """Start a network. It takes some seconds until it can be used: `wait`."""
    base = Path(tempfile.mkdtemp(prefix="shoal-tor-network-"))
    try:
        network = TorNetwork(base)
        try:
            yield network
        finally:
            network.stop()
    finally:
        shutil.rmtree(base)


def _authority(tor: str, folder: Path, port: int, door: int) -> str:
    """Make the keys of an authority. Answers the line by which others know it."""
    keys = folder / "keys"
    keys.mkdir(mode=0o700, parents=True)
    folder.chmod(0o700)
    files = ("-i", keys / "authority_identity_key", "-s", keys / "authority_signing_key")
    certificate = keys / "authority_certificate"
    subprocess.run(
        [need("tor-gencert", "tor"), "--create-identity-key", "--passphrase-fd", "0", *files, "-c", certificate],
        input=b"none\n",
        check=True,
        capture_output=True,
    )
    nobody = f"nobody 127.0.0.1:{port} {'f' * 40}"
    named = ("--DirAuthority", nobody, "--Nickname", "authority", "--ORPort", str(port), "--DataDirectory", folder)
    none = ("-f", folder / "none", "--defaults-torrc", folder / "none", "--ignore-missing-torrc", "--quiet")
    subprocess.run([tor, *none, "--list-fingerprint", *named], check=True, capture_output=True)
    fingerprint = (folder / "fingerprint").read_text().split()[1]
    found = re.search(r"^fingerprint (\w+)$", certificate.read_text(), re.MULTILINE)
    assert found is not None
    return f"authority orport={port} v3ident={found[1]} 127.0.0.1:{door} {fingerprint}"

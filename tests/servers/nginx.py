"""A private nginx for the tests, with any configuration that keeps to its own folder."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from servers.proxies import need
from support.waiting import wait_until


@contextmanager
def running_nginx(folder: Path, configuration: str, port: int) -> Iterator[None]:
    """nginx, listening on `port`. What it has to say goes to `folder/nginx.log`."""
    path = folder / "nginx.conf"
    path.write_text(configuration)
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen([need("nginx", "nginx-light"), "-p", str(folder), "-c", str(path)], stderr=log)
    try:

        def listens() -> bool:
            assert process.poll() is None, (folder / "nginx.log").read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait_until(listens, "nginx listens")
        yield
    finally:
        process.terminate()
        process.wait()

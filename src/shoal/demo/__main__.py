"""`python -m shoal.demo [--port 8808] [--host 127.0.0.1] [-- COMMAND …]`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from typing import TYPE_CHECKING

from shoal.demo.command import run_command
from shoal.demo.shop import DemoShop

if TYPE_CHECKING:
    from collections.abc import Sequence


async def _open_shop(host: str, port: int, command: Sequence[str]) -> int:
    shop = DemoShop(host=host, port=port)
    async with shop:
        taken = f" (port {port} is taken)" if port not in (0, shop.port) else ""
        if command:
            sys.stderr.write(f"The demo shop is open at {shop.url}{taken}\n")
            return await run_command(command, shop.url)
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        sys.stdout.write(f"The demo shop is open at {shop.url}{taken}\n")
        sys.stdout.flush()
        await stop.wait()
    return 0


def main(arguments: Sequence[str]) -> int:
    """Serve until Ctrl-C, or for as long as the command behind `--` runs; the exit code is the command's."""
    own, marker, command = list(arguments), "--", []
    if marker in own:
        own, command = own[: own.index(marker)], own[own.index(marker) + 1 :]
    parser = argparse.ArgumentParser(
        prog="python -m shoal.demo",
        usage="%(prog)s [--port PORT] [--host HOST] [-- COMMAND …]",
        description="A small fake bookshop to crawl. COMMAND finds its address in SHOAL_DEMO_URL.",
    )
    parser.add_argument("--port", type=int, default=8808, help="the next free one if taken (default: %(default)s)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    options = parser.parse_args(own)
    if marker in arguments and not command:
        parser.error("there is no command behind --")
    try:
        return asyncio.run(_open_shop(options.host, options.port, command))
    except (OSError, OverflowError) as error:
        sys.stderr.write(f"The demo shop cannot listen on {options.host}:{options.port}: {error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

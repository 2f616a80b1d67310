"""Load on a gateway from a process of its own: so many connections, each with one request at a time.

    python load.py submit HOST PORT CONNECTIONS SECONDS ITEMS IDS    # submits carts, writes the ids of jobs to IDS
    python load.py read HOST PORT CONNECTIONS SECONDS ITEMS IDS      # asks how the jobs of IDS stand

Begins when a line comes on stdin; prints one JSON object at the end.
"""

from __future__ import annotations

import asyncio
import json
import random
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import uvloop
from light_http import connect, get, post

if TYPE_CHECKING:
    from light_http import Connection


class Load:
    """Requests of one kind, and what became of them."""

    def __init__(self, what: str, items: int, ids: Path) -> None:
        self._submits, self._ids = what == "submit", ids
        cart = {"items": [f"thing{number}" for number in range(items)], "zipcode": "10001"}
        known = [] if self._submits else ids.read_text().split()
        self._requests = [get(f"/results/{job_id}") for job_id in known] or [post("/cart", json.dumps(cart).encode())]
        self._chance = random.Random(1)  # noqa: S311 - which job is asked for
        self._made: list[str] = []
        self.times: list[float] = []
        self.refused = 0

    async def use(self, connection: Connection, until: float) -> None:
        """One request after the other."""
        while (began := time.perf_counter()) < until:
            status, answer = await connection.ask(self._chance.choice(self._requests))
            self.times.append(time.perf_counter() - began)
            if status not in (200, 202) or b'"queued"' not in answer:
                self.refused += 1
                await asyncio.sleep(0.1)
            elif self._submits:
                self._made.append(json.loads(answer)["job_id"])

    def save(self) -> None:
        """Keep the ids of what was submitted, for those who look."""
        with self._ids.open("a") as output:
            output.writelines(f"{job_id}\n" for job_id in self._made)


async def main() -> None:
    """One measurement."""
    what, host, port, connections, seconds, items, ids = sys.argv[1:]
    load = Load(what, int(items), Path(ids))
    opened = [await connect(host, int(port)) for _ in range(int(connections))]
    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    began = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for connection in opened:
            group.create_task(load.use(connection, began + float(seconds)))
    took = time.perf_counter() - began
    for connection in opened:
        connection.close()
    load.save()
    cuts = statistics.quantiles(load.times, n=100)
    done = len(load.times) - load.refused
    print(json.dumps({"done": done, "refused": load.refused, "seconds": took, "p50": cuts[49], "p99": cuts[98]}))


if __name__ == "__main__":
    uvloop.run(main())

"""Users that wait for results of their own, many in one process, each with a connection of its own.

    python crowd.py HOST PORT FIRST USERS ARRIVE

Says `connected`; then waits for a line on stdin, submits over ARRIVE seconds, says `waiting` when every job was
accepted and everybody waits for theirs, and prints one JSON object when all have their results, each checked by its
content.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from datetime import datetime
from typing import Any

import uvloop
from light_http import Connection, connect, get, post

CONNECT_AT_ONCE = 100
PATIENCE = 300.0
WAIT = 25


class Crowd:
    """What has happened to everybody so far."""

    def __init__(self, host: str, port: int, first: int, users: int) -> None:
        self._host, self._port, self._first, self._users = host, port, first, users
        self._accepted = 0
        self.submits: list[float] = []
        self.deliveries: list[float] = []
        self.waits: list[float] = []
        self.shed = 0
        self.polls = 0
        self.wrong: list[str] = []

    async def connect(self) -> list[Connection]:
        """A connection for everybody."""
        room = asyncio.Semaphore(CONNECT_AT_ONCE)

        async def one() -> Connection:
            async with room:
                return await connect(self._host, self._port)

        return await asyncio.gather(*(one() for _ in range(self._users)))

    async def user(self, connection: Connection, number: int, delay: float) -> None:
        """Submit, wait, and look at what came."""
        await asyncio.sleep(delay)
        code = str(self._first + number)
        job_id = await self._submit(connection, code)
        begun = time.perf_counter()
        self._accepted += 1
        if self._accepted == self._users:
            print("waiting", flush=True)
        while True:
            status, body = await connection.ask(get(f"/results/{job_id}?wait={WAIT}"))
            self.polls += 1
            document: dict[str, Any] = json.loads(body)
            if status == 503:
                self.shed += 1
                await asyncio.sleep(connection.retry_after)
            elif status != 200 or document["status"] not in ("queued", "processing"):
                break
        self.waits.append(time.perf_counter() - begun)
        self._check(status, document, job_id, code)

    async def _submit(self, connection: Connection, code: str) -> str:
        request = post("/cart", json.dumps({"items": [f"thing{code}"], "zipcode": code}).encode())
        first = time.perf_counter()
        while True:
            status, body = await connection.ask(request)
            if status == 202:
                self.submits.append(time.perf_counter() - first)
                return str(json.loads(body)["job_id"])
            if status != 503:
                raise RuntimeError(f"{status}: {body[:300]!r}")
            self.shed += 1
            await asyncio.sleep(connection.retry_after)

    def _check(self, status: int, document: dict[str, Any], job_id: str, code: str) -> None:
        mine = {f"thing{code}": [{"found": f"/?q=thing{code}&zip={code}"}]}
        if status != 200 or document["job_id"] != job_id or document.get("results") != mine:
            self.wrong.append(f"{status} {json.dumps(document)[:300]} instead of {mine}")
        else:
            ended = datetime.fromisoformat(document["ended_at"]).timestamp()
            self.deliveries.append(time.time() - ended)


async def main() -> None:
    """The life of a crowd."""
    host, port, first, users, arrive = sys.argv[1:]
    crowd = Crowd(host, int(port), int(first), int(users))
    connections = await crowd.connect()
    print("connected", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        for number, connection in enumerate(connections):
            group.create_task(crowd.user(connection, number, float(arrive) * number / len(connections)))
    for connection in connections:
        connection.close()
    print(
        json.dumps(
            {
                "right": len(crowd.deliveries),
                "wrong": crowd.wrong[:5],
                "shed": crowd.shed,
                "polls": crowd.polls,
                "submits": crowd.submits,
                "deliveries": crowd.deliveries,
                "longest_wait": max(crowd.waits),
                "median_wait": statistics.median(crowd.waits),
            }
        )
    )


if __name__ == "__main__":
    uvloop.run(main())

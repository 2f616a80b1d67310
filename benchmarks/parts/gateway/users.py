"""Users at once: each submits a job and waits for its result; first nobody works, then workers drain them all."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from parts.gateway.stage import PARTS, Gateway, empty_store, end, start_shoal, start_site, start_worker
from parts.shared.report import BenchmarkError, Goal, number, progress, table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import ExitStack

    from parts.shared.private_servers import PrivateServers

GATEWAYS = 2
CROWDS = 2
WORKERS = 2
ARRIVALS_PER_SECOND = 1000.0
HOLD = 6.0
"""Seconds for which all wait and nobody works, to see what waiting costs."""


@dataclass(frozen=True)
class Crowd:
    """What became of everybody. Seconds, bytes, and calls to the store per second."""

    engine: str
    users: int
    right: int
    wrong: int
    shed: int
    submit_p50: float
    submit_p99: float
    delivery_p50: float
    delivery_p99: float
    bytes_per_client: float
    waiting_calls: float
    waiting_cpu: float
    drain_seconds: float
    whole_seconds: float


def measure_users(stack: ExitStack, servers: PrivateServers, engine: str, users: int) -> Crowd:
    """The whole of it, on an empty store."""
    store = empty_store(stack, servers, engine)
    site_port = start_site(stack)
    gateway = start_shoal(stack, store, GATEWAYS, site_port)
    began = time.perf_counter()
    before = gateway.memory()
    progress(f"{engine}: {users:,} users connect …")
    crowds = _gather(stack, gateway, users)
    progress(f"{engine}: they submit …")
    for crowd in crowds:
        crowd.stdin.write("go\n")
        crowd.stdin.flush()
    for crowd in crowds:
        _expect(crowd, "waiting")
    calls, cpu = _hold(servers, engine, gateway)
    taken = gateway.memory() - before
    progress(f"{engine}: all were accepted and wait; now workers begin …")
    at_work = time.perf_counter()
    workers = [start_worker(stack, store, site_port) for _ in range(WORKERS)]
    said = [_result(crowd) for crowd in crowds]
    ended = time.perf_counter()
    for worker in workers:
        end(worker)
    submits = _cuts([value for each in said for value in each["submits"]])
    deliveries = _cuts([value for each in said for value in each["deliveries"]])
    for each in said:
        for line in each["wrong"]:
            progress(line)
    return Crowd(
        engine=engine,
        users=users,
        right=sum(each["right"] for each in said),
        wrong=users - sum(each["right"] for each in said),
        shed=sum(each["shed"] for each in said),
        submit_p50=submits[49],
        submit_p99=submits[98],
        delivery_p50=deliveries[49],
        delivery_p99=deliveries[98],
        bytes_per_client=taken / users,
        waiting_calls=calls,
        waiting_cpu=cpu,
        drain_seconds=ended - at_work,
        whole_seconds=ended - began,
    )


def _gather(stack: ExitStack, gateway: Gateway, users: int) -> list[subprocess.Popen[str]]:
    """Clients in several processes, each towards an address of its own, so that ports do not run out."""
    crowds = []
    each = users // CROWDS
    for number_ in range(CROWDS):
        many = each if number_ else users - each * (CROWDS - 1)
        words = [f"127.0.0.{number_ + 2}", str(gateway.port), str(100_000 * (number_ + 1)), str(many)]
        arrive = str(users / ARRIVALS_PER_SECOND)
        crowd = subprocess.Popen(
            [sys.executable, str(PARTS / "crowd.py"), *words, arrive],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(end, crowd)
        crowds.append(crowd)
    for crowd in crowds:
        _expect(crowd, "connected")
    return crowds


def _hold(servers: PrivateServers, engine: str, gateway: Gateway) -> tuple[float, float]:
    """Calls to the store per second while everybody waits and nobody works, and processors in use by the gateway."""
    time.sleep(2)
    calls, cpu = servers.calls(engine), gateway.cpu_seconds()
    time.sleep(HOLD)
    return (servers.calls(engine) - calls) / HOLD, (gateway.cpu_seconds() - cpu) / HOLD


def _expect(crowd: subprocess.Popen[str], word: str) -> None:
    said = crowd.stdout.readline().strip()
    if said != word:
        raise BenchmarkError(f"A crowd of clients said {said[:200]!r} and not {word!r}; see above.")


def _result(crowd: subprocess.Popen[str]) -> dict[str, Any]:
    line = crowd.stdout.readline()
    if not line:
        raise BenchmarkError("A crowd of clients ended without a result; see above.")
    found: dict[str, Any] = json.loads(line)
    return found


def _cuts(values: Sequence[float]) -> list[float]:
    return statistics.quantiles(values, n=100) if len(values) > 1 else [0.0] * 99


def users_table(crowds: Sequence[Crowd]) -> str:
    """A column for each engine."""
    rows = [
        ["users at once", *(number(each.users) for each in crowds)],
        ["got their own result", *(number(each.right) for each in crowds)],
        ["did not", *(number(each.wrong) for each in crowds)],
        ["told to come back (503)", *(number(each.shed) for each in crowds)],
        ["submit p50 ms", *(number(1000 * each.submit_p50) for each in crowds)],
        ["submit p99 ms", *(number(1000 * each.submit_p99) for each in crowds)],
        ["from the end of a job to its client p50 ms", *(number(1000 * each.delivery_p50) for each in crowds)],
        ["from the end of a job to its client p99 ms", *(number(1000 * each.delivery_p99) for each in crowds)],
        ["gateway memory per waiting client, KiB", *(number(each.bytes_per_client / 1024) for each in crowds)],
        ["calls to the store per s while all wait", *(number(each.waiting_calls) for each in crowds)],
        ["processors used by gateways meanwhile", *(number(each.waiting_cpu) for each in crowds)],
        ["s from the first worker to the last result", *(number(each.drain_seconds) for each in crowds)],
        ["s in all", *(number(each.whole_seconds) for each in crowds)],
    ]
    return table(["what", *(each.engine for each in crowds)], rows)


def users_goals(crowds: Sequence[Crowd]) -> list[Goal]:
    """Everybody, and as many as the design says."""
    return [
        goal
        for each in crowds
        for goal in (
            Goal(f"users who waited at once and got their own result, {each.engine}", 25_000, each.right),
            Goal(f"results that were lost or mixed up, {each.engine}", 0, each.wrong, at_least=False),
        )
    ]

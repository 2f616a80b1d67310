"""Nothing that a client sends stops a gateway, fills it, or keeps another client waiting.

One gateway on each engine takes all attacks, one after the other. `make proof` sends ten times as much.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from proof.strangers.at_the_gate import ATTACKS
from proof.strangers.gate import Gate, MemoryWatch, Neighbour, open_gate
from support.crawling import site_process
from support.engine_urls import ENGINES, empty_store

MOST_MEMORY = 300_000_000
MOST_SECONDS = 1.0
LONG = 10


@contextmanager
def _attacked(folder: Path, engine: str, scale: int) -> Iterator[tuple[Gate, str]]:
    with (
        site_process(folder) as (port, _log),
        empty_store(engine, folder) as store,
        open_gate(folder, store, f"http://127.0.0.1:{port}/site/3/", scale) as opened,
    ):
        yield opened


@pytest.fixture(scope="module", params=[(engine, 1) for engine in ENGINES], ids=ENGINES)
def gate(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gate, str]]:
    engine, scale = request.param
    folder = tmp_path_factory.mktemp(f"gate-{engine}")
    with _attacked(folder, engine, scale) as opened:
        yield opened


@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.__name__ for attack in ATTACKS])
def test_an_attack_costs_at_most_itself(gate: tuple[Gate, str], attack: Callable[[Gate], str]) -> None:
    _withstands(*gate, attack)


def _withstands(gate: Gate, key: str, attack: Callable[[Gate], str]) -> Neighbour:
    process = gate.served.process
    with Neighbour(gate, key).watching() as neighbour, MemoryWatch(process.pid).watching() as memory:
        said = attack(gate)
    assert process.poll() is None, (gate.served.folder / "serve.log").read_text()[-4000:]
    print(
        f"{attack.__name__}: {said}; {len(neighbour.seconds)} answers to another client, "
        f"p99 {neighbour.p99 * 1000:.0f} ms, memory {memory.most / 1e6:.0f} MB",
        file=sys.stderr,
    )
    assert not neighbour.faults, neighbour.faults[:5]
    assert memory.most < MOST_MEMORY
    return neighbour


@pytest.mark.proof
@pytest.mark.parametrize("engine", ENGINES)
def test_ten_times_as_much(tmp_path: Path, engine: str) -> None:
    with _attacked(tmp_path, engine, LONG) as (gate, key):
        slowest = {attack.__name__: _withstands(gate, key, attack).p99 for attack in ATTACKS}
    assert max(slowest.values()) < MOST_SECONDS, slowest

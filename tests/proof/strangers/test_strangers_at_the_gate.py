"""Nothing that a client sends stops a gateway, fills it, or keeps another client waiting.

One gateway takes all attacks, one after the other; those that reach the store are made on each engine.
`make proof` makes all of them on each, and sends ten times as much.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from proof.strangers.at_the_gate import ON_THE_STORE, ON_THE_WIRE, Attack
from proof.strangers.gate import Gate, MemoryWatch, Neighbour, attacked
from support.engine_urls import ENGINES

MOST_MEMORY = 300_000_000
MOST_SECONDS = 1.0
LONG = 10


@pytest.fixture(scope="module")
def gate(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gate, str]]:
    with attacked(tmp_path_factory.mktemp(f"gate-{request.param}"), request.param, 1) as opened:
        yield opened


def _named(attacks: Sequence[Attack]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("attack", attacks, ids=[attack.__name__ for attack in attacks])


@pytest.mark.parametrize("gate", ["sqlite"], indirect=True)
@_named(ON_THE_WIRE)
def test_an_attack_on_the_wire_costs_at_most_itself(gate: tuple[Gate, str], attack: Attack) -> None:
    _withstands(*gate, attack)


@pytest.mark.parametrize("gate", ENGINES, indirect=True)
@_named(ON_THE_STORE)
def test_an_attack_on_the_store_costs_at_most_itself(gate: tuple[Gate, str], attack: Attack) -> None:
    _withstands(*gate, attack)


def _withstands(gate: Gate, key: str, attack: Attack) -> Neighbour:
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
    with attacked(tmp_path, engine, LONG) as (gate, key):
        slowest = {attack.__name__: _withstands(gate, key, attack).p99 for attack in (*ON_THE_WIRE, *ON_THE_STORE)}
    assert max(slowest.values()) < MOST_SECONDS, slowest

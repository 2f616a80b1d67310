"""Fairness between clients: whoever asks for much waits for itself, and nobody else is turned away for it."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.command_line import shoal
from support.gateway_process import CART, Served, served
from support.waiting import wait_until

GREEDY = 4
SUBMISSIONS = 15
URLS = [f"http://127.0.0.1/{number}" for number in range(10_000)]


@pytest.fixture(scope="module")
def gateway(shop: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("shares"), shop) as running:
        yield running
        assert running.stop() == 0


@pytest.fixture(scope="module")
def keys(gateway: Served) -> list[str]:
    """One for each greedy client, and one for the modest one."""
    engine = f"sqlite:///{gateway.folder}/shoal.db"
    names = [*(f"greedy{number}" for number in range(GREEDY)), "modest"]
    return [json.loads(shoal("keys", "create", name, "--engine", engine, "--json").stdout)["key"] for name in names]


@contextmanager
def beside(gateway: Served, keys: list[str], each: int, path: str, body: object) -> Iterator[Counter[int]]:
    """Greedy clients, each asking for so many at once, again and again. Gives what they are answered, by status."""
    answers: Counter[int] = Counter()
    over = threading.Event()
    raw = json.dumps(body).encode()

    def ask(key: str) -> None:
        while not over.is_set():
            answers[gateway.ask(path, raw, Authorization=f"Bearer {key}").status] += 1

    clients = [threading.Thread(target=ask, args=(key,)) for key in keys for _ in range(each)]
    for client in clients:
        client.start()
    yield answers
    over.set()
    for client in clients:
        client.join()


def modest(gateway: Served, key: str, goes_on: Callable[[], object]) -> list[float]:
    """Submits one job after the other, all of which must be taken. Answers the seconds that each took."""
    wait_until(goes_on, "the greedy ones are at it")
    took: list[float] = []
    for _ in range(SUBMISSIONS):
        began = time.monotonic()
        answer = gateway.ask("/cart", CART, Authorization=f"Bearer {key}")
        assert answer.status == 202, (answer.raw, took)
        took.append(time.monotonic() - began)
    return sorted(took)


def told(what: str, took: list[float], answers: Counter[int]) -> None:
    print(
        f"\n{what}: {len(took)} of {len(took)} modest submissions taken, median {took[len(took) // 2] * 1000:.0f} ms, "
        f"longest {took[-1] * 1000:.0f} ms; the others were answered {dict(answers)}"
    )


def test_jobs_of_ten_thousand_pages(gateway: Served, keys: list[str]) -> None:
    with beside(gateway, keys[:GREEDY], 2, "/jobs", {"scraper": "plain", "urls": URLS}) as answers:
        took = modest(gateway, keys[-1], lambda: answers)
    told("large jobs", took, answers)
    assert answers[202], "the greedy ones are served, too"


def test_starts_that_take_long(gateway: Served, keys: list[str]) -> None:
    """24 at a time, of 3 seconds each."""
    began = time.monotonic()
    with beside(gateway, keys[:GREEDY], 6, "/slow", {"word": "x"}) as answers:
        took = modest(gateway, keys[-1], lambda: time.monotonic() - began > 0.5)
    told("slow starts", took, answers)


def test_without_keys_clients_are_known_by_their_address(shop: str, tmp_path: Path) -> None:
    """Here all come from one, and one is served as well as it can be."""
    with served(tmp_path, shop) as gateway:
        assert gateway.ask("/cart", CART).status == 202

"""A fuzzer that looks for cost: what a stranger's file takes of time and memory, and how that grows with its size.

An input is made of few pieces that are pumped: said again and again, as many times as a size asks for. So the same
input comes in two sizes, and what takes four times as long for twice as much is found wherever it is. Each has a
number, and is made of nothing else: a test that fails names it, and it can be had again.

Time is that of this thread on its processor, the least of several tries where it matters: others may be busy.
"""

from __future__ import annotations

import gc
import random
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

KIB, MIB = 1 << 10, 1 << 20
WORTH_A_LOOK = 0.05
"""Seconds of CPU below which growth is not looked at: too little to tell."""

STEEPEST = 3.0
"""Twice the input may cost so many times as much."""

PAGE = 4096


@dataclass(frozen=True, slots=True)
class Pumped:
    """`head`, then each part as often as it takes to fill its share of a size, then `tail`."""

    head: bytes
    parts: tuple[bytes, ...]
    tail: bytes

    def of_size(self, size: int) -> bytes:
        room = max(0, size - len(self.head) - len(self.tail)) // max(1, len(self.parts))
        return self.head + b"".join(part * (room // len(part)) for part in self.parts) + self.tail


def pumped(chance: random.Random, words: Sequence[bytes]) -> Pumped:
    """Any of these: few words in a row, up to three such rows one after the other."""

    def some(*numbers: int) -> bytes:
        return b"".join(chance.choice(words) for _ in range(chance.choice(numbers)))

    parts = tuple(some(1, 1, 2, 3, 5) for _ in range(chance.choice((1, 1, 1, 2, 3))))
    return Pumped(some(0, 0, 1, 2, 4), parts, some(0, 0, 1, 3))


def numbered(name: str, first: int, seconds: float | None, most: int) -> Iterator[tuple[int, random.Random]]:
    """The numbers of inputs, each with its own chance: `most` of them, or for as long as that."""
    ends = None if seconds is None else time.monotonic() + seconds
    number = first
    while number < first + most if ends is None else time.monotonic() < ends:
        yield number, random.Random(f"{name} {number}")
        number += 1


def size_of(number: int, largest: int) -> int:
    """Most are small, so that there are many of them; one of ten is as large as it may be."""
    return largest if number % 10 == 0 else min(largest, 64 * KIB)


def cpu(do: Callable[[bytes], object], data: bytes, tries: int = 1) -> float:
    """The least CPU time that it takes of so many tries."""
    spans = []
    gc.disable()
    try:
        for _ in range(tries):
            began = time.thread_time()
            do(data)
            spans.append(time.thread_time() - began)
    finally:
        gc.enable()
    return min(spans)


def peak(do: Callable[[bytes], object], data: bytes) -> int:
    """The most bytes that Python held at a time because of it."""
    tracemalloc.start()
    try:
        do(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def resident() -> int:
    """Bytes that this process has in memory, those of C libraries too."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def check_time(what: str, do: Callable[[bytes], object], half: bytes, whole: bytes, allowed: float) -> float:
    """Twice the input costs about twice as much, and not more CPU time than is allowed. Answers what it took."""
    large = cpu(do, whole)
    if allowed < large < 10 * allowed:
        large = cpu(do, whole, 3)
    assert large <= allowed, f"{what}: {large:.3f} s of CPU, and {allowed:.3f} s are allowed"
    if large > WORTH_A_LOOK and large > STEEPEST * cpu(do, half):
        large, small = cpu(do, whole, 3), cpu(do, half, 3)
        told = f"{what}: {small:.3f} s, and {large:.3f} s for twice as much"
        assert large <= max(WORTH_A_LOOK, STEEPEST * small), told
    return large

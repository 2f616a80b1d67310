"""What a lease client asks for, and how often it does what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Protocol

from shoal.core.clock import Millis
from shoal.core.lanes import PAGE_LANES
from shoal.core.task import DEFAULT_POOL, DIRECT
from shoal.errors import UsageError


@dataclass(frozen=True, slots=True)
class LeaseOptions:
    """What is claimed. `scrapers`: tasks of these, by name. `lanes`: in order of preference. `queues`: None = all
    runs of its scrapers; else those whose queue (of a run without one: its id) is named.

    `concurrency`: the most leases that are held at once. `batch`: the most that are claimed at once; None = as many as
    there is room for. `drain`: claims come to an end when nothing is left to do in its lanes and queues; False = they
    wait for more.
    `charge_all`: a sudden death of this process is a crash of every task whose lease was handed out; False = of those
    alone that were within `LeaseClient.handling`.
    `sweep`: bring back what lost workers held, as everyone who works on a store does.
    """

    scrapers: Sequence[str]
    lanes: Sequence[str] = PAGE_LANES
    queues: Sequence[str] | None = None
    concurrency: int = 1
    batch: int | None = None
    drain: bool = False
    charge_all: bool = True
    sweep: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.scrapers, str):
            raise UsageError(f"The scrapers whose tasks are claimed are a list of names, not {self.scrapers!r} alone.")
        for name, number in (("concurrency", self.concurrency), ("batch", self.batch)):
            if number is not None and number < 1:
                raise UsageError(f"A worker's {name} must be 1 or more, not {number}.")


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """How often, and for how long. The defaults suit every store; tests take others. Seconds, unless said otherwise."""

    poll: tuple[float, float] = (0.15, 0.3)
    """Between two looks at a store where others may have changed something: between these, at random."""
    shortest_wait: float = 0.002
    """Before the next look where the last one found nothing, though something was said to be due."""
    idle_look: float = 2.0
    """Between two looks while nothing is wanted."""
    sweep_every: float = 2.0
    sweep_after_a_death: float = 0.05
    """At most and at random: those who notice do not all come to the store at the same moment."""
    look_at_leases_every: float = 1.0
    renew_every: Millis = 30_000
    """How often a lease is renewed; three times in its life if that is more often."""
    last_word: float = 5.0
    """That a store which answers is given to take what is settled and given back in the end."""
    compare_after: tuple[Millis, ...] = (0, 2_000, 8_000, 32_000)
    """When, after a lost answer, the store is told what is held: at the next exchange, and so long after each time. A
    question that nobody waits for any more may still be answered: a store that stood still finds it when it goes on."""


class UsableExits(Protocol):
    """The exits that requests can leave by, as they are now; read anew for every claim.

    `pools`: names by pool. `private`: pools in which other workers have other exits. `far`: exits by which what is sent
    may be seconds on its way.
    """

    @property
    def pools(self) -> Mapping[str, Sequence[str]]: ...

    @property
    def private(self) -> Sequence[str]: ...

    @property
    def far(self) -> Set[str]: ...


@dataclass(frozen=True, slots=True)
class FixedExits:
    """Exits that stay the same; the direct one, unless told of others."""

    pools: Mapping[str, Sequence[str]] = field(default_factory=lambda: {DEFAULT_POOL: (DIRECT,)})
    private: Sequence[str] = ()
    far: Set[str] = frozenset()

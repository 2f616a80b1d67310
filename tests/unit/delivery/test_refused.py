"""A group of settlements that a store refuses: the culprit is found, and the others stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from shoal.core.outcome import Dead, Done, Settlement
from shoal.core.storable import is_storable
from shoal.delivery.refused import Heard, is_refusal, settle_apart
from shoal.errors import EngineFull, EngineUnavailable, Unstorable
from shoal.frontier.contract.frontier import Granted


class Store:
    """Refuses every group that has one of these tasks in it with items. `held`: what was noted at each call."""

    def __init__(self, odd: set[int], error: Exception, late: Sequence[int] = ()) -> None:
        self.odd = odd
        self.error = error
        self.late = set(late)
        self.calls = 0
        self.settled: list[Settlement] = []
        self.noted: set[int] = set()
        self.held: list[tuple[set[int], set[int]]] = []

    async def settle(self, some: Sequence[Settlement]) -> Granted:
        self.calls += 1
        self.held.append(({each.task for each in some}, set(self.noted)))
        if any(each.task in self.odd and isinstance(each.outcome, Done) for each in some):
            raise self.error
        self.settled += some
        return Granted((), 0, None, 0, [each.token for each in some if each.token in self.late])

    @contextmanager
    def handling(self, task: int) -> Iterator[None]:
        self.noted.add(task)
        yield
        self.noted.discard(task)


def settlements(number: int) -> list[Settlement]:
    return [Settlement("run", task, 1000 + task, Done((b"{}",)), 5, 1, 10) for task in range(1, number + 1)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What is logged is not printed: tracebacks take long."""
    with capture_logs():
        yield


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 40), st.sets(st.integers(1, 40), max_size=4))
async def test_only_those_that_are_refused_are_buried(number: int, odd: set[int]) -> None:
    store = Store(odd, Unstorable("PostgreSQL does not hold \0 such a value."))
    heard = await settle_apart(store.settle, settlements(number), store.handling)
    assert sorted(each.task for each in heard.settlements) == list(range(1, number + 1))
    for each in heard.settlements:
        assert isinstance(each.outcome, Dead if each.task in odd else Done)
        assert (each.token, each.started_at, each.requests, each.received) == (1000 + each.task, 5, 1, 10)
    assert heard.settlements == store.settled
    assert store.calls <= 2 * number + len(odd)


async def test_the_reason_can_be_stored() -> None:
    heard = await settle_apart(Store({1}, ValueError("\0\ud800" * 2000)).settle, settlements(1))
    (buried,) = heard.settlements
    assert isinstance(buried.outcome, Dead)
    assert "refused by the store: ValueError" in buried.outcome.reason.text
    assert is_storable(buried.outcome.reason.text)


async def test_a_sudden_death_is_charged_to_those_that_are_asked_about() -> None:
    store = Store({3}, ValueError("odd"))
    await settle_apart(store.settle, settlements(4), store.handling)
    together = [(asked, noted) for asked, noted in store.held if len(asked) > 1 or 3 in asked]
    assert together[0] == ({1, 2}, {1, 2})
    assert all(noted in (asked, set()) for asked, noted in store.held)
    assert not store.noted


async def test_what_comes_too_late_is_told() -> None:
    heard = await settle_apart(Store({1}, ValueError(), late=[1002]).settle, settlements(3))
    assert heard.late == [1002]


@pytest.mark.parametrize("error", [EngineUnavailable("away"), EngineFull("full")])
async def test_a_store_that_is_away_or_full_has_not_refused(error: Exception) -> None:
    assert not is_refusal(error)
    with pytest.raises(type(error)):
        await settle_apart(Store({1}, error).settle, settlements(3))


async def test_a_store_that_refuses_even_the_burial_is_left_with_it() -> None:
    async def never(_some: Sequence[Settlement]) -> Granted:
        raise Unstorable("no")

    assert await settle_apart(never, settlements(2)) == Heard([], [])

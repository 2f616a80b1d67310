"""Fair queueing between clients."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shoal.gateway.limits.fair_queue import FairQueue


def drained(queue: FairQueue[int]) -> list[tuple[str, int]]:
    return [found for _ in range(len(queue)) if (found := queue.take()) is not None]


def test_clients_take_turns_and_each_has_its_own_order() -> None:
    queue: FairQueue[int] = FairQueue(100)
    for number, client in enumerate("aaaabbc"):
        assert queue.put(client, number) is None
    assert drained(queue) == [("a", 0), ("b", 4), ("c", 6), ("a", 1), ("b", 5), ("a", 2), ("a", 3)]
    assert queue.take() is None


def test_whoever_has_most_gives_way() -> None:
    queue: FairQueue[int] = FairQueue(4)
    assert [queue.put("greedy", number) for number in range(4)] == [None] * 4
    assert queue.put("greedy", 4) == 4, "its own last one"
    assert not queue.has_room("greedy")
    assert queue.has_room("modest")
    assert queue.put("modest", 5) == 3
    assert queue.put("modest", 6) == 2
    assert queue.put("modest", 7) == 7, "now both have as many"
    assert not queue.has_room("modest")
    assert drained(queue) == [("greedy", 0), ("modest", 5), ("greedy", 1), ("modest", 6)]


def test_those_who_may_not_are_passed_over() -> None:
    queue: FairQueue[int] = FairQueue(4)
    queue.put("a", 1)
    queue.put("b", 2)
    assert queue.has_next(lambda client: client == "b")
    assert queue.take(lambda client: client == "b") == ("b", 2)
    assert not queue.has_next(lambda client: client == "b")
    assert queue.take(lambda _: False) is None
    assert len(queue) == 1


@given(st.lists(st.sampled_from("abcd"), max_size=60), st.integers(1, 20))
def test_nothing_is_lost_and_nobody_modest_is_turned_away(clients: list[str], most: int) -> None:
    queue: FairQueue[int] = FairQueue(most)
    gone = [each for number, client in enumerate(clients) if (each := queue.put(client, number)) is not None]
    kept = drained(queue)
    assert sorted([*gone, *(number for _, number in kept)]) == list(range(len(clients)))
    assert len(kept) == min(most, len(clients))
    fair = most // 4
    for client in "abcd":
        assert sum(each == client for each, _ in kept) >= min(fair, clients.count(client))

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shoal.work.store.known_links import KnownLinks

RUNS = st.sampled_from(["a", "b", "c"])
ADDITIONS = st.lists(st.tuples(RUNS, st.lists(st.integers(0, 30).map(str), max_size=5)), max_size=40)


@given(ADDITIONS, st.integers(1, 20))
def test_it_never_claims_what_was_not_added(additions: list[tuple[str, list[str]]], half: int) -> None:
    known_links = KnownLinks(half)
    added: dict[str, set[str]] = {"a": set(), "b": set(), "c": set()}
    for run, urls in additions:
        known_links.add(run, urls)
        added[run].update(urls)
        for name, all_of_run in added.items():
            young, old = known_links.of(name)
            assert young | old <= all_of_run


@given(ADDITIONS, st.integers(1, 20))
def test_it_is_bounded(additions: list[tuple[str, list[str]]], half: int) -> None:
    known_links = KnownLinks(half)
    for run, urls in additions:
        known_links.add(run, urls)
        assert sum(len(part) for name in "abc" for part in known_links.of(name)) <= 2 * (half + 5)


def test_it_remembers_the_latest() -> None:
    known_links = KnownLinks(10)
    for number in range(1000):
        known_links.add("run", [str(number)])
        young, old = known_links.of("run")
        assert str(number) in young | old
        assert number < 9 or str(number - 9) in young | old


def test_runs_that_had_nothing_to_add_leave_nothing_behind() -> None:
    known_links = KnownLinks(10)
    for number in range(1000):
        known_links.add(f"run{number}", [])
    assert (known_links._young, known_links._old) == ({}, {})


def test_many_small_runs_are_forgotten() -> None:
    known_links = KnownLinks(10)
    for number in range(1000):
        known_links.add(f"run{number}", ["http://x.example/"])
    assert len(known_links._young) + len(known_links._old) <= 20


def test_an_unknown_run_has_nothing_and_cannot_be_given_anything() -> None:
    known_links = KnownLinks()
    assert known_links.of("nobody") == (set(), set())

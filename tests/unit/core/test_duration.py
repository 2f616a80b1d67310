"""Durations: numbers of seconds or texts, one reader, wherever a user gives one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal import Client, Request, Route, Scraper
from shoal.api.routes import Routes
from shoal.core.duration import MOST_SECONDS, seconds_from, wanted
from shoal.errors import UsageError
from shoal.intake.admission import to_task


@pytest.mark.parametrize(
    ("given_as", "seconds"),
    [
        (0, 0.0), (2, 2.0), (0.25, 0.25), ("500ms", 0.5), ("2s", 2.0), ("90", 90.0), ("1.5h", 5400.0),
        (" 10 m ", 600.0),
        ("6h", 21600.0), ("2d", 172800.0), ("1w", 604800.0), (MOST_SECONDS, MOST_SECONDS), ("366d", MOST_SECONDS),
    ],
)  # fmt: skip
def test_a_number_of_seconds_or_a_text_with_a_unit(given_as: Any, seconds: float) -> None:
    assert seconds_from(given_as) == seconds


@pytest.mark.parametrize(
    "given_as",
    [-1, -0.001, float("nan"), float("inf"), 10**400, True, None, [], b"2s", "", "s", "2 years", "-2s", "1e3s", "367d",
     "9" * 400 + "h", "2s3", "\u0663s"],
)  # fmt: skip
def test_all_else_is_refused_with_what_it_should_have_been(given_as: Any) -> None:
    with pytest.raises(ValueError, match='a text such as "500ms"'):
        seconds_from(given_as)


@pytest.mark.parametrize("nothing", [0, 0.0, "0", "0ms", "0.0h"])
def test_nothing_is_a_duration_unless_it_must_be_positive(nothing: Any) -> None:
    assert seconds_from(nothing) == 0
    with pytest.raises(ValueError, match="above 0, and a year at most"):
        seconds_from(nothing, positive=True)


@given(st.one_of(st.text(), st.integers(), st.floats(), st.none(), st.binary()))
def test_whatever_is_given_there_is_a_number_in_bounds_or_one_sentence(value: Any) -> None:
    try:
        seconds, complaint = seconds_from(value), None
    except ValueError as error:
        seconds, complaint = 0.0, str(error)
    assert 0 <= seconds <= MOST_SECONDS
    assert complaint in (None, wanted())


def test_every_place_of_a_scraper_takes_both() -> None:
    def scraper(short: Any, long: Any) -> list[Any]:
        made = Scraper(
            "x", delay=short, site_delay=short, timeout=long, cache=long, every=long, results_ttl=long,
            lanes={"bulk": {"ttl": long}}, routes=[Route(host="a.example", delay=short, ttl=long)],
        )  # fmt: skip
        made.page(lambda page: None)
        tasks = [to_task(Request("https://b.example/", ttl=long, every=long), made)]
        routes = made.routes
        assert isinstance(routes, Routes)
        found = [routes.find("https://a.example/", "a.example"), routes.delay_of("a.example")]
        return [made.delay, made.site_delay, made.timeout, made.cache, made.every, made.policy(), *tasks, *found]

    assert scraper(0.5, 7200) == scraper("500ms", "2h")


def test_a_client_takes_both_and_says_what_is_wrong() -> None:
    Client(patience="2s").close()
    with pytest.raises(UsageError, match="patience='soon' cannot be used: it must be a number of seconds"):
        Client(patience="soon")

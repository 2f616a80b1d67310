from __future__ import annotations

import pytest

from support.waiting import until, wait_until


async def test_the_answer_comes_as_soon_as_it_is_something() -> None:
    answers = iter(["", "", "here"])
    assert await until(lambda: next(answers), "it is here") == "here"
    assert next(answers, "asked no more often than that") == "asked no more often than that"


async def test_a_condition_may_have_to_be_awaited() -> None:
    answers = iter([0, 7])

    async def answer() -> int:
        return next(answers)

    assert await until(answer, "it is more than nothing") == 7


def test_without_a_loop() -> None:
    answers = iter([0, 7])
    assert wait_until(lambda: next(answers), "it is more than nothing") == 7


async def test_what_never_comes_is_named() -> None:
    with pytest.raises(AssertionError, match=r"until pigs fly; the last answer was \[\]"):
        await until(list, "pigs fly", within=0)
    with pytest.raises(AssertionError, match=r"until pigs fly; the last answer was \[\]"):
        wait_until(list, "pigs fly", within=0)

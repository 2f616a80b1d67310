from __future__ import annotations

import pytest

from shoal.fetch.protocol import FetchError
from shoal.outcome import Blame
from shoal.task import NO_EXTRA, Lease, Task
from shoal.work import doubts as doubts_module
from shoal.work.doubts import Doubts

CUT = FetchError("connection reset (through a proxy)", Blame.EXIT, doubtful=True)


def lease(exit_: str, site: str = "a.example") -> Lease:
    task = Task(1, "run", "test", f"https://{site}/", site, "bulk", None, 0, 0, 0, 0, NO_EXTRA)
    return Lease(task, 7, exit_, 0, 0, 0, 0, 0, exclusive=True)


def test_an_exit_that_fails_again_while_others_get_through_is_to_blame() -> None:
    doubts = Doubts()
    assert doubts.resolve(lease("liar"), CUT) is CUT, "the first time it may be either"
    doubts.answered(lease("good"))
    judged = doubts.resolve(lease("liar"), CUT)
    assert (judged.blame, judged.doubtful, judged.text) == (Blame.EXIT, False, CUT.text)


def test_a_site_that_answers_nobody_leaves_it_in_doubt() -> None:
    doubts = Doubts()
    doubts.answered(lease("one"))
    for exit_ in ("one", "two", "three", "one", "two", "three"):
        assert doubts.resolve(lease(exit_), CUT) is CUT


def test_an_answer_of_another_site_says_nothing() -> None:
    doubts = Doubts()
    doubts.resolve(lease("one"), CUT)
    doubts.answered(lease("two", "b.example"))
    assert doubts.resolve(lease("one"), CUT) is CUT


def test_an_exit_by_which_other_pages_are_had_is_not_to_blame_for_one_that_never_comes() -> None:
    doubts = Doubts()
    for exit_ in ("one", "two", "one", "two"):
        assert doubts.resolve(lease(exit_), CUT) is CUT
        doubts.answered(lease("one"))
        doubts.answered(lease("two"))


def test_what_is_sure_stays_so() -> None:
    refused = FetchError("the proxy cannot be reached", Blame.EXIT)
    assert Doubts().resolve(lease("one"), refused) is refused


def test_only_so_many_sites_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubts_module, "REMEMBERED", 2)
    doubts = Doubts()
    doubts.resolve(lease("one"), CUT)
    for site in ("a.example", "b.example", "c.example"):
        doubts.answered(lease("two", site))
    assert doubts.resolve(lease("one"), CUT) is CUT, "a.example is forgotten"
    assert doubts.resolve(lease("one", "c.example"), CUT) is not CUT

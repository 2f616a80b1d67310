from __future__ import annotations

from shoal.core.outcome import Blame
from shoal.core.task import NO_EXTRA, Lease, Task
from shoal.fetch.protocol import FetchError
from shoal.work.exits.exit_blame import ExitBlame

CUT = FetchError("connection reset (through a proxy)", Blame.EXIT, doubtful=True)


def lease(exit_: str, site: str = "a.example") -> Lease:
    task = Task(1, "run", "test", f"https://{site}/", site, "bulk", None, 0, 0, 0, 0, NO_EXTRA)
    return Lease(task, 7, exit_, 0, 0, 0, 0, 0, exclusive=True)


def test_an_exit_that_fails_again_while_others_get_through_is_to_blame() -> None:
    blame = ExitBlame()
    assert blame.resolve(lease("liar"), CUT) is CUT, "the first time it may be either"
    blame.answered(lease("good"))
    judged = blame.resolve(lease("liar"), CUT)
    assert (judged.blame, judged.doubtful, judged.text) == (Blame.EXIT, False, CUT.text)


def test_a_site_that_answers_nobody_leaves_it_in_doubt() -> None:
    blame = ExitBlame()
    blame.answered(lease("one"))
    for exit_ in ("one", "two", "three", "one", "two", "three"):
        assert blame.resolve(lease(exit_), CUT) is CUT


def test_an_answer_of_another_site_says_nothing() -> None:
    blame = ExitBlame()
    blame.resolve(lease("one"), CUT)
    blame.answered(lease("two", "b.example"))
    assert blame.resolve(lease("one"), CUT) is CUT


def test_an_exit_by_which_other_pages_are_had_is_not_to_blame_for_one_that_never_comes() -> None:
    blame = ExitBlame()
    for exit_ in ("one", "two", "one", "two"):
        assert blame.resolve(lease(exit_), CUT) is CUT
        blame.answered(lease("one"))
        blame.answered(lease("two"))


def test_what_is_sure_stays_so() -> None:
    refused = FetchError("the proxy cannot be reached", Blame.EXIT)
    assert ExitBlame().resolve(lease("one"), refused) is refused


def test_only_so_many_sites_are_remembered() -> None:
    blame = ExitBlame(remembered=2)
    blame.resolve(lease("one"), CUT)
    for site in ("a.example", "b.example", "c.example"):
        blame.answered(lease("two", site))
    assert blame.resolve(lease("one"), CUT) is CUT, "a.example is forgotten"
    assert blame.resolve(lease("one", "c.example"), CUT) is not CUT

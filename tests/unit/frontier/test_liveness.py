from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from shoal.frontier.shared.liveness import PLACES, Notebook, introduce, is_gone, read_notebook, started, this_machine

DIES_WITH_TASKS_IN_HAND = """
import os, sys
from pathlib import Path
from shoal.frontier.shared.liveness import Notebook

book = Notebook(Path(sys.argv[1]))
with book.holding(5):
    pass
with book.holding(7), book.holding(2**62), book.holding(9):
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def book(tmp_path: Path) -> Iterator[Notebook]:
    book = Notebook(tmp_path / "book")
    yield book
    if book.path.exists():
        book.close()


def hand(book: Notebook) -> set[int] | None:
    noted = read_notebook(str(book.path))
    return None if noted is None else set(noted)


# The notebook


def test_it_says_what_is_in_hand_and_nothing_else(book: Notebook) -> None:
    assert hand(book) == set()
    with book.holding(1):
        with book.holding(2):
            assert hand(book) == {1, 2}
        assert hand(book) == {1}
    assert hand(book) == set()


def test_it_lets_go_however_the_block_ends(book: Notebook) -> None:
    with pytest.raises(SystemExit), book.holding(1):
        raise SystemExit
    assert hand(book) == set()


def test_places_are_used_again(book: Notebook) -> None:
    for task in range(1, 10 * PLACES):
        with book.holding(task):
            assert hand(book) == {task}


def test_what_has_no_place_is_not_noted(book: Notebook) -> None:
    with ExitStack() as stack:
        for task in range(1, PLACES + 10):
            stack.enter_context(book.holding(task))
        assert hand(book) == set(range(1, PLACES + 1))
    assert hand(book) == set()
    with book.holding(999):
        assert hand(book) == {999}


def test_it_survives_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "book"
    with subprocess.Popen(
        [sys.executable, "-c", DIES_WITH_TASKS_IN_HAND, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
    assert read_notebook(str(file)) == frozenset({7, 9, 2**62})


def test_before_a_death_the_one_to_blame_is_noted_alone(book: Notebook) -> None:
    with book.holding(7), book.holding(8), book.holding(9):
        book.charge_only(8)
        assert hand(book) == {8}
        book.charge_only(2**62)
        assert hand(book) == {2**62}


def test_closed_it_is_gone(book: Notebook) -> None:
    book.close()
    assert hand(book) is None


def test_a_notebook_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    assert read_notebook(None) is None
    assert read_notebook(str(tmp_path / "nowhere")) is None
    assert read_notebook(str(tmp_path)) is None


# Life and death


def test_this_process_lives() -> None:
    since = started(os.getpid())
    assert since is not None
    assert abs(since / 1000 - time.time()) < 24 * 3600
    assert not is_gone(os.getpid(), since)


def test_a_process_that_has_ended_is_gone_even_before_it_is_buried() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    since = started(process.pid)
    assert since is not None
    assert not is_gone(process.pid, since)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, but nobody has asked for its exit code yet
    assert is_gone(process.pid, since)
    process.communicate()
    assert is_gone(process.pid, since)
    assert started(process.pid) is None


@pytest.mark.parametrize("milliseconds", [-3_600_000, -2100, 2100, 3_600_000])
def test_another_process_under_the_same_number_is_not_the_same(milliseconds: int) -> None:
    since = started(os.getpid())
    assert since is not None
    assert is_gone(os.getpid(), since + milliseconds)


@pytest.mark.parametrize("milliseconds", [-1000, 0, 1000])
def test_a_little_inexactness_does_not_kill(milliseconds: int) -> None:
    since = started(os.getpid())
    assert since is not None
    assert not is_gone(os.getpid(), since + milliseconds)


def test_every_worker_is_someone_else() -> None:
    one, book_of_one = introduce()
    other, book_of_other = introduce()
    try:
        assert one.worker_id != other.worker_id
        assert book_of_one.path != book_of_other.path
        assert (one.machine, one.pid) == (this_machine(), os.getpid())
        assert one.notebook == str(book_of_one.path)
        assert book_of_one.path.parent.parent == Path(tempfile.gettempdir())
        assert not is_gone(one.pid, one.pid_started)
    finally:
        book_of_one.close()
        book_of_other.close()

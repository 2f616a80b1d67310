"""The drawing in the documentation is exactly the state table in the code."""

from __future__ import annotations

import re
from pathlib import Path

from shoal.core.task import FINAL, TRANSITIONS, State

PAGE = (Path(__file__).parents[3] / "docs" / "explanation" / "state-machine.md").read_text(encoding="utf-8")
ARROW = re.compile(r"^ +(\S+) --> (\S+?)(?:: (.+))?$", re.MULTILINE)


def _arrows() -> list[tuple[str, str, str]]:
    drawing = PAGE.split("```mermaid\n")[1].split("```")[0]
    return ARROW.findall(drawing)


def test_every_move_is_drawn_and_nothing_else() -> None:
    drawn = [arrow for arrow in _arrows() if "[*]" not in arrow]
    assert sorted(drawn) == sorted((str(start), str(end), how) for start, end, how in TRANSITIONS)


def test_the_ends_that_are_drawn_are_the_final_states() -> None:
    assert [arrow[1:] for arrow in _arrows() if arrow[0] == "[*]"] == [(State.WAITING.value, "enqueue")]
    assert sorted(start for start, end, _ in _arrows() if end == "[*]") == sorted(FINAL)


def test_every_state_is_explained() -> None:
    explained = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert explained == [state.value for state in State]


def test_a_final_state_is_left_by_the_user_only() -> None:
    assert {(start, how) for start, _, how in TRANSITIONS if start in FINAL} == {(State.DEAD, "requeue")}

"""The door for plain workers: an outcome that any store can hold, or a sentence that says why none can.

What Shoal's own workers settle has come through admission; whoever settles with an outcome of their own comes by here.
"""

from __future__ import annotations

import msgspec

from shoal.core.outcome import Done, Outcome, Reason
from shoal.core.storable import MAX_DATA, MAX_ITEM, MAX_URL, NUL, cleaned, has_nul, json_problem, text_problem
from shoal.core.task import NewTask
from shoal.errors import UsageError


def storable_outcome(outcome: Outcome) -> Outcome:
    """The same, with reasons cleaned and cut. Raises UsageError if it holds what no store can."""
    if isinstance(outcome, Done):
        _check(outcome)
        return outcome
    return outcome if outcome.reason is None else msgspec.structs.replace(outcome, reason=_clean(outcome.reason))


def _clean(reason: Reason) -> Reason:
    detail, traceback = (None if each is None else cleaned(each, 4096) for each in (reason.detail, reason.traceback))
    return Reason(reason.blame, cleaned(reason.text), detail, traceback)


def _check(done: Done) -> None:
    problems = [("an item", json_problem(item, MAX_ITEM)) for item in done.items]
    problems += [("the URL", text_problem(done.url, MAX_URL)), ("the group", text_problem(done.group or ""))]
    for task in done.tasks:
        problems += [(f"of the link {cleaned(task.url, 100)!r} {what}", problem) for what, problem in _of_link(task)]
    for what, problem in problems:
        if problem is not None:
            raise UsageError(f"This lease cannot be settled so: {what} cannot be stored, because {problem}.")


def _of_link(task: NewTask) -> list[tuple[str, str | None]]:
    names = (("the site", task.site), ("the label", task.handler), ("the group", task.extra.group))
    problems = [(what, text_problem(name)) for what, name in names if name is not None]
    problems.append(("the URL", text_problem(task.url, MAX_URL)))
    try:
        encoded = msgspec.json.encode(task.extra.data)
    except (TypeError, ValueError, OverflowError, RecursionError, NotImplementedError) as error:
        return [*problems, ("the data", f"JSON cannot hold it ({cleaned(error, 200)})")]
    return [*problems, ("the data", NUL if has_nul(encoded) else json_problem(encoded, MAX_DATA))]

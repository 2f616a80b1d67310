"""What is remembered of pages that ended otherwise than done, in the transaction that ends them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

import msgspec

from shoal.core.clock import Moment
from shoal.core.task import NO_EXTRA, Extra, NewTask, State, accepted_url
from shoal.frontier.shared.endings import NAME_BYTES, names_of, page_of
from shoal.frontier.sqlite.store.transaction import Transaction

_extra = msgspec.json.Decoder(Extra)

Ending = tuple[State, str | None]
"""How a task ends, and why (JSON), if there is something to say."""


def end_otherwise(tx: Transaction, ended: Mapping[int, Ending]) -> None:
    """Remember how these tasks end, each by its number. They still have to be deleted."""
    rows: list[tuple[object, ...]] = []
    for task, run, url, extra, expires_at in tx.rows("find_pages", tasks=list(ended)):
        state, reason = ended[task]
        moment = expires_at if state is State.EXPIRED else tx.now
        rows += _row(run, url, extra, state, moment, reason)
    store_endings(tx, sorted(rows, key=itemgetter(0, 1)))


def purge_letters(tx: Transaction, tasks: Sequence[int]) -> None:
    """Remember that these were dead letters, because they will be deleted."""
    rows: list[tuple[object, ...]] = []
    for run, url, extra, reason, died_at in tx.rows("find_letters", tasks=list(tasks)):
        rows += _row(run, url, extra, State.DEAD, died_at, reason)
    store_endings(tx, sorted(rows, key=itemgetter(0, 1)))


def begin_again(tx: Transaction, run: int, tasks: Iterable[NewTask]) -> None:
    """These are let in although the run may have seen them: how their pages ended before does not count any more."""
    pages = {page for task in tasks if (page := page_of(task.url, task.extra)) is not None}
    names = [name for page in pages for name in names_of(page)]
    if names:
        indices = [NAME_BYTES * place + 1 for place in range(len(names))]
        tx.run("forget_endings", run=run, names=b"".join(names), starts=indices)


def _row(
    run: int, url: str, extra: str | None, state: State, moment: Moment, reason: str | None
) -> list[tuple[object, ...]]:
    told = NO_EXTRA if extra is None else _extra.decode(extra)
    page = page_of(url, told)
    if page is None:
        return []
    accepted = accepted_url(url, told)
    return [(run, names_of(page)[0], state.value, moment, reason, None if accepted == page else accepted)]


def store_endings(tx: Transaction, rows: Sequence[tuple[object, ...]]) -> None:
    """Remember endings: run, name of the page, state, moment, reason, url."""
    tx.write_rows("store_endings", rows)

"""Forgetting slots that say nothing any more: of exits that nobody uses, at sites that nobody visits."""

from __future__ import annotations

from shoal.core.politeness import KEPT_AT_REST
from shoal.frontier.sqlite.store.transaction import Transaction

STRETCH = 500
"""How many slots one sweep looks at."""

BEHIND_ALL = (1 << 62, "")


def forget_slots(tx: Transaction) -> None:
    """Look through the next stretch of slots. A process that is new begins anywhere; behind the last comes the first.

    Each process remembers where it was. A place in the file would cost a write to the disk with each sweep.
    """
    site, exit_ = tx.cache.looked_at or (int(tx.value("find_any_site")) - 1, "")
    end = tx.row("find_stretch", site=site, exit=exit_, most=STRETCH)
    last_site, last_exit = end or BEHIND_ALL
    tx.run(
        "forget_slots",
        site=site,
        exit=exit_,
        last_site=last_site,
        last_exit=last_exit,
        before=tx.now - KEPT_AT_REST,
    )
    tx.cache.looked_at = end or (-1, "")

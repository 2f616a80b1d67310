"""Outcomes: how a lease can end. One closed set, matched exhaustively wherever it is used."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from shoal.core.clock import Millis, Moment
from shoal.core.notes import Entry, Note
from shoal.core.task import Extra, NewTask


class Blame(StrEnum):
    """What a failure is charged to."""

    URL = "url"
    HOST = "host"
    EXIT = "exit"
    HANDLER = "handler"
    POLICY = "policy"
    WORKER = "worker"


class Reason(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a task did not end well: what is to blame, in a few words, and where (scraper, handler, line) if known.

    `traceback`: of an exception in a handler, a few kilobytes at most.
    """

    blame: Blame
    text: str
    detail: str | None = None
    traceback: str | None = None


class Done(msgspec.Struct, frozen=True, gc=False, tag="done"):
    """The handler has run. Items (encoded JSON objects) and new tasks are stored with the settlement or not at all."""

    items: tuple[bytes, ...] = ()
    tasks: tuple[NewTask, ...] = ()
    url: str = ""
    """Where the items come from: the URL that was read, after redirects."""
    group: str | None = None


class Retried(msgspec.Struct, frozen=True, tag="retry"):
    """The task failed and is to be tried again after `wait`. Raises `attempts` by one; the slot is free."""

    wait: Millis
    reason: Reason


class Snoozed(msgspec.Struct, frozen=True, tag="snooze"):
    """The task goes back unharmed, to the place it had; its SLOT waits for `wait` (0 = only its usual delay).

    `aside`: how long the task itself waits; where that is longer than its slot, another task of the site, if there is
    one, is the next to try. `penalty` is the number of rate limits in a row that the slot has now seen. With `wait`,
    `penalty` and `aside` 0 this is how a lease is given back. `extra` replaces that of the task, with what it remembers
    of its setbacks and of the way that redirects have led it.
    """

    wait: Millis = 0
    penalty: int = 0
    reason: Reason | None = None
    extra: Extra | None = None
    aside: Millis = 0


class Dead(msgspec.Struct, frozen=True, tag="dead"):
    """The task will not be tried again and becomes a dead letter.

    `extra` replaces that of the task: one that is requeued begins anew, and remembers none of its setbacks.
    """

    reason: Reason
    extra: Extra | None = None

    @property
    def attempts(self) -> int:
        """What `attempts` is raised by: what policy forbids was not tried."""
        return 0 if self.reason.blame is Blame.POLICY else 1


class Dropped(msgspec.Struct, frozen=True, tag="drop"):
    """The task is not wanted (robots.txt, `raise Drop`). Not a failure."""

    reason: Reason


Outcome = Done | Retried | Snoozed | Dead | Dropped


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """The end of one lease. Effective once, and only with the token of a lease that still lives.

    `started_at`: by when the target has seen its (last) request, or try to connect, by the store's clock; None = there
    was none, the slot's clock does not move. `refused`, `duplicates`: links that the worker did not pass on, because
    they cannot be fetched or because it knows that the run has them.
    `crawl_delay`: what the site's robots.txt asks for; raises the delay of its slots from now on.
    `pace`: how far apart starts of one slot of this site should be from now on, because it suffers or has recovered;
    never below the delay, 0 = back to it; None = as it is.
    `exits_failed`: exits that are known to have failed, this lease's or one that the task was tried by before; each is
    charged with one failure. `exits_ok`: exits that are known to work.
    `saved_requests`, `saved_bytes`: what did not have to be asked for, or sent, because it was remembered.
    `notes`, `entries`: what is to be remembered because of it, in the same transaction: if it comes too late, or its
    run was cancelled, they are thrown away. Entries that lie beside its site and let go do so also of a cancelled run.
    """

    run_id: str
    task: int
    token: int
    outcome: Outcome
    started_at: Moment | None = None
    requests: int = 0
    received: int = 0
    refused: int = 0
    duplicates: int = 0
    crawl_delay: Millis | None = None
    pace: Millis | None = None
    exits_failed: tuple[str, ...] = ()
    exits_ok: tuple[str, ...] = ()
    saved_requests: int = 0
    saved_bytes: int = 0
    notes: tuple[Note, ...] = ()
    entries: tuple[Entry, ...] = ()

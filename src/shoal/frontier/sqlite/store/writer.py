"""The one thread that writes, with group commit: whatever has come in by then shares one transaction."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from shoal.core.clock import Clock
from shoal.errors import EngineError, EngineRefused, Unstorable
from shoal.frontier.sqlite.errors import clear_errors
from shoal.frontier.sqlite.store.transaction import Transaction
from shoal.frontier.sqlite.store.writer_cache import WriterCache

Answer = TypeVar("Answer")
Verb = Callable[[Transaction], Any]

GROUP_AT_MOST = 64


@dataclass(slots=True)
class QueuedVerb:
    """A verb that waits for its transaction, and who waits for its answer."""

    verb: Verb
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    answer: Any = None
    error: BaseException | None = None

    def report(self) -> None:
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.answer)


class Writer:
    """Runs verbs on the connection, one after the other. An answer is given only when it is durable."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, clock: Clock, cache: WriterCache | None = None
    ) -> None:
        self._connection = connection
        self._path = path
        self._clock = clock
        self._calls: queue.SimpleQueue[QueuedVerb | None] = queue.SimpleQueue()
        self._closed = False
        self._cache = cache or WriterCache()
        self._thread = threading.Thread(target=self._work, name="shoal-sqlite-writer", daemon=True)
        self._thread.start()

    async def call(self, verb: Callable[[Transaction], Answer]) -> Answer:
        """Run a verb in a transaction, together with others that wait at that moment."""
        if self._closed:
            raise EngineRefused(f"{self._path} has been closed.")
        loop = asyncio.get_running_loop()
        call = QueuedVerb(verb, loop, loop.create_future())
        self._calls.put(call)
        answer: Answer = await call.future
        return answer

    async def close(self) -> None:
        """Finish what was asked before, then let go of the file."""
        if self._closed:
            return
        self._closed = True
        self._calls.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        open_for_calls = True
        while open_for_calls:
            group = [self._calls.get()]
            with contextlib.suppress(queue.Empty):
                while len(group) < GROUP_AT_MOST:
                    group.append(self._calls.get_nowait())
            open_for_calls = None not in group
            calls = [call for call in group if call is not None]
            if calls:
                self._commit(calls)
        self._connection.close()

    def _commit(self, calls: list[QueuedVerb]) -> None:
        try:
            with clear_errors(self._path):
                self._connection.execute("BEGIN IMMEDIATE")
                self._cache.begin(self._connection)
                tx = Transaction(self._connection, self._clock.now(), self._cache)
                for call in calls:
                    self._run(tx, call, alone=len(calls) == 1)
                self._connection.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to those who wait, not to this thread
            self._roll_back()
            for call in calls:
                call.error = call.error or error
        for loop in {call.loop for call in calls}:
            with contextlib.suppress(RuntimeError):  # the loop is gone, and nobody waits
                loop.call_soon_threadsafe(_report, [call for call in calls if call.loop is loop])

    def _run(self, tx: Transaction, call: QueuedVerb, *, alone: bool) -> None:
        """One verb. A mistake of its caller undoes this verb only, not its neighbours in the group."""
        if not alone:
            self._connection.execute("SAVEPOINT verb")
        try:
            with clear_errors(self._path):
                call.answer = call.verb(tx)
                tx.close_books()
        except Exception as error:
            if alone or _is_of_the_store(error):
                raise
            call.error = error
            tx.forget()
            self._connection.execute("ROLLBACK TO verb")
        if not alone:
            self._connection.execute("RELEASE verb")

    def _roll_back(self) -> None:
        self._cache.forget()
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")


def _is_of_the_store(error: Exception) -> bool:
    """Whether the file itself failed, which concerns everyone in the group."""
    if isinstance(error, EngineError):
        return not isinstance(error, Unstorable)
    return isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.ProgrammingError)


def _report(calls: list[QueuedVerb]) -> None:
    for call in calls:
        call.report()

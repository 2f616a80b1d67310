"""Fair queueing: one line for each client, served in turn. When there is no room, whoever has most gives way."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class FairQueue(Generic[Entry]):
    """Entries by client. `most`: how many there is room for, over all clients."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lines: OrderedDict[str, deque[Entry]] = OrderedDict()
        self._total = 0

    def __len__(self) -> int:
        return self._total

    def has_room(self, client: str) -> bool:
        """Whether an entry of this client would be let in: there is room, or somebody has more entries than it."""
        if self._total < self._most:
            return True
        mine = len(self._lines.get(client, ()))
        return any(len(line) > mine for line in self._lines.values())

    def put(self, client: str, entry: Entry) -> Entry | None:
        """Let an entry in. Answers the one that has to go for it: the last of whoever has most; None = there is room.

        The one that has to go may be the one that came.
        """
        self._lines.setdefault(client, deque()).append(entry)
        self._total += 1
        if self._total <= self._most:
            return None
        greediest = max(self._lines, key=lambda each: len(self._lines[each]))
        mine = self._lines[client]
        if len(mine) >= len(self._lines[greediest]):
            greediest = client
        return self._pop(greediest, last=True)

    def take(self, may: Callable[[str], bool] | None = None) -> tuple[str, Entry] | None:
        """The next entry of the client whose turn it is, and who may (None = all may); None = there is none."""
        for client in self._lines:
            if may is None or may(client):
                entry = self._pop(client, last=False)
                if client in self._lines:
                    self._lines.move_to_end(client)
                return client, entry
        return None

    def has_next(self, may: Callable[[str], bool]) -> bool:
        """Whether `take` would find one."""
        return any(map(may, self._lines))

    def _pop(self, client: str, *, last: bool) -> Entry:
        line = self._lines[client]
        entry = line.pop() if last else line.popleft()
        self._total -= 1
        if not line:
            del self._lines[client]
        return entry

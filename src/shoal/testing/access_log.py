"""What a target saw of us: the only witness whose word on politeness counts.

In the file each request leaves two lines: one when its head has been read, one when it has been answered. Each line
is one unbuffered write, so that `kill -9` of the site loses nothing that it saw.
"""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import msgspec


class AccessEntry(msgspec.Struct, tag="began", tag_field="event"):
    """One request. Times are seconds since the epoch; `started` is when the last byte of its head arrived.

    `host` is the Host header in lower case and without the port. `path` is the target as asked, with its query.
    `finished` is None and `status` 0 while it is being answered; `status` stays 0 if no status was ever sent.
    `overlapped`: at some time another request of the same host and peer was being answered too.
    """

    number: int
    started: float
    peer: str
    local: str
    method: str
    host: str
    path: str
    agent: str
    finished: float | None = None
    status: int = 0
    overlapped: bool = False


class Ended(msgspec.Struct, tag="ended", tag_field="event"):
    """The second line of a request: it ends the latest entry with that number."""

    number: int
    finished: float
    status: int
    overlapped: bool


Key = Callable[[AccessEntry], Hashable]


def slot(entry: AccessEntry) -> tuple[str, str]:
    """The slot as the target can tell it: (Host, peer)."""
    return entry.host, entry.peer


class AccessLog:
    """Requests in the order in which they arrived, and what politeness tests ask of them.

    `torn` counts the lines that could not be read: at most one for each kill of the site.
    """

    def __init__(self, entries: Iterable[AccessEntry] = (), *, torn: int = 0) -> None:
        self.entries = list(entries)
        self.torn = torn

    @classmethod
    def read(cls, file: Path | str) -> AccessLog:
        """The log in `file` as it is now; it may still be being written."""
        decode = msgspec.json.Decoder(AccessEntry | Ended).decode
        log = cls()
        latest: dict[int, AccessEntry] = {}
        for line in Path(file).read_bytes().splitlines():
            try:
                record = decode(line)
            except msgspec.DecodeError:
                log.torn += 1
                continue
            if isinstance(record, AccessEntry):
                latest[record.number] = record
                log.entries.append(record)
            elif (entry := latest.get(record.number)) is not None:
                entry.finished, entry.status, entry.overlapped = record.finished, record.status, record.overlapped
        return log

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[AccessEntry]:
        return iter(self.entries)

    def filter(self, prefix: str = "", *, host: str | None = None, peer: str | None = None) -> AccessLog:
        """The entries whose path begins with `prefix`, of that host and peer; None means any."""
        return AccessLog(
            entry
            for entry in self.entries
            if entry.path.startswith(prefix)
            and (host is None or entry.host == host)
            and (peer is None or entry.peer == peer)
        )

    def gaps(self, key: Key = slot) -> dict[Hashable, list[float]]:
        """Seconds from each start to the next of the same key, smallest first. A key seen once has no gaps."""
        starts: defaultdict[Hashable, list[float]] = defaultdict(list)
        for entry in self.entries:
            starts[key(entry)].append(entry.started)
        found: dict[Hashable, list[float]] = {}
        for name, times in starts.items():
            times.sort()
            found[name] = sorted(later - sooner for sooner, later in pairwise(times))
        return found

    def smallest_gap(self, key: Key = slot) -> float:
        """The smallest gap of any key; infinity if no key was seen twice."""
        return min((gaps[0] for gaps in self.gaps(key).values() if gaps), default=float("inf"))

    def most_at_once(self, key: Key = slot, *, blur: float = 0.0) -> int:
        """The most requests of one key that were being answered at the same time. Unfinished ones never end.

        `blur`: the last so many seconds of each do not count, in which its end was perhaps not noticed yet.
        """
        moments: defaultdict[Hashable, list[tuple[float, int]]] = defaultdict(list)
        for entry in self.entries:
            moments[key(entry)].append((entry.started, 1))
            if entry.finished is not None:
                moments[key(entry)].append((max(entry.finished - blur, entry.started), -1))
        most = 0
        for changes in moments.values():
            running = 0
            for _, change in sorted(changes, key=lambda moment: moment[0]):  # stable: an instant one still counts
                running += change
                most = max(most, running)
        return most

    def counts(self) -> Counter[str]:
        """How often each path was asked for."""
        return Counter(entry.path for entry in self.entries)


class AccessRecorder:
    """Writes a log while requests happen: to memory always, to `file` too if one is given (it is appended to)."""

    def __init__(self, file: Path | str | None = None) -> None:
        self.log = AccessLog()
        self._running: defaultdict[tuple[str, str], dict[int, AccessEntry]] = defaultdict(dict)
        self._encode = msgspec.json.Encoder().encode
        self._descriptor = None if file is None else _open_to_append(Path(file))

    def began(self, entry: AccessEntry) -> None:
        """Record a request whose head has been read."""
        running = self._running[slot(entry)]
        if running:
            entry.overlapped = True
            for other in running.values():
                other.overlapped = True
        running[entry.number] = entry
        self.log.entries.append(entry)
        self._write(entry)

    def ended(self, entry: AccessEntry, status: int) -> None:
        """Record that a request has been answered, or given up."""
        entry.finished, entry.status = time.time(), status
        running = self._running[slot(entry)]
        running.pop(entry.number, None)
        if not running:
            del self._running[slot(entry)]
        self._write(Ended(entry.number, entry.finished, status, entry.overlapped))

    def close(self) -> None:
        """Close the file. The log in memory stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _write(self, record: AccessEntry | Ended) -> None:
        if self._descriptor is not None:
            os.write(self._descriptor, self._encode(record) + b"\n")


def _open_to_append(file: Path) -> int:
    torn = file.exists() and not file.read_bytes().endswith(b"\n") and file.stat().st_size > 0
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    if torn:
        os.write(descriptor, b"\n")
    return descriptor

"""The event log as it was written, read back: calls with their answers, and what was done to disturb them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from shoal.core.clock import Moment
from shoal.frontier.recording import VERBS, Answered, Called, Closed, Event, Failed, Opened


class Disturbance(msgspec.Struct, frozen=True, tag="disturbed", tag_field="event"):
    """Something that was done on purpose to hurt a run, from `at` until `until`. `pid`: None = not to one process.

    Two kinds mean something to the rules: `kill` (the process is dead from `at` on) and those whose name begins with
    `store` (nobody could reach the store meanwhile). Every kind is counted.
    """

    at: Moment
    until: Moment
    kind: str
    pid: int | None = None


class DisturbanceLog:
    """Writes disturbances into the folder of the events, as they end."""

    FILE = "disturbances.jsonl"

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / self.FILE

    def add(self, disturbance: Disturbance) -> None:
        """One more line."""
        with self._file.open("ab", buffering=0) as file:
            file.write(msgspec.json.encode(disturbance) + b"\n")


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a verb. `answered_at`: None = no answer is known, so that it may have happened or not.

    `ended_at`: when it was answered or failed; None = neither was written down.
    """

    process: str
    pid: int
    verb: str
    at: Moment
    given: Any
    answer: Any = None
    answered_at: Moment | None = None
    ended_at: Moment | None = None

    @property
    def doubtful(self) -> bool:
        """Whether nobody knows what became of it."""
        return self.answered_at is None

    def surely_before(self, other: RecordedCall) -> bool:
        """Whether it had taken effect before the other could."""
        return self.answered_at is not None and self.answered_at < other.at


class History:
    """All calls by the time they were made, and all disturbances. `torn` counts lines that could not be read."""

    def __init__(
        self,
        calls: Iterable[RecordedCall],
        disturbances: Iterable[Disturbance] = (),
        *,
        torn: int = 0,
        processes: int = 0,
    ) -> None:
        self.calls = sorted(calls, key=lambda call: call.at)
        self.disturbances = sorted(disturbances, key=lambda each: each.at)
        self.torn = torn
        self.processes = processes

    @classmethod
    def read(cls, folder: Path | str) -> History:
        """The events of all processes that wrote into `folder`."""
        calls: list[RecordedCall] = []
        disturbances: list[Disturbance] = []
        torn = processes = 0
        for file in sorted(Path(folder).glob("*.jsonl")):
            lines = file.read_bytes().splitlines()
            if file.name == DisturbanceLog.FILE:
                disturbances += [msgspec.json.decode(line, type=Disturbance) for line in lines]
                continue
            processes += 1
            found, bad = _calls_of(file.stem, lines)
            calls += found
            torn += bad
        return cls(calls, disturbances, torn=torn, processes=processes)

    def of(self, verb: str) -> list[RecordedCall]:
        """The calls of one verb, by time."""
        return [call for call in self.calls if call.verb == verb]

    def killed_at(self, pid: int) -> Moment | None:
        """When a process was killed; None = it was not."""
        return next((each.at for each in self.disturbances if each.kind == "kill" and each.pid == pid), None)

    def store_away(self, since: Moment, until: Moment) -> int:
        """For how many milliseconds of that time the store could not be reached."""
        away, counted = 0, since
        for each in self.disturbances:
            if each.kind.startswith("store"):
                away += max(0, min(until, each.until) - max(counted, each.at))
                counted = max(counted, each.until)
        return away


_decode = msgspec.json.Decoder(Opened | Called | Answered | Failed | Closed).decode


def _calls_of(process: str, lines: Sequence[bytes]) -> tuple[list[RecordedCall], int]:
    """The calls of one process, and how many lines could not be read."""
    called: dict[int, Called] = {}
    ends: dict[int, Answered | Failed] = {}
    pid = torn = 0
    for line in lines:
        try:
            event: Event = _decode(line)
        except msgspec.DecodeError:
            torn += 1
            continue
        match event:
            case Opened():
                pid = event.pid
            case Called():
                called[event.number] = event
            case Answered() | Failed():
                ends[event.number] = event
            case Closed():
                pass
    return [_call(process, pid, call, ends.get(call.number)) for call in called.values()], torn


def _call(process: str, pid: int, call: Called, end: Answered | Failed | None) -> RecordedCall:
    given, answer = VERBS[call.verb]
    content = None if given is None else msgspec.json.decode(call.given, type=given)
    if not isinstance(end, Answered):
        return RecordedCall(process, pid, call.verb, call.at, content, ended_at=None if end is None else end.at)
    result = None if answer is None else msgspec.json.decode(end.answer, type=answer)
    return RecordedCall(process, pid, call.verb, call.at, content, result, end.at, end.at)

"""Everything that can go wrong, in one tree.

ShoalError
├── UsageError              the user asked for something that cannot be: one sentence, exit code 2
│   ├── BadURL              a URL that cannot be fetched, with the reason
│   ├── BadSettings         shoal.toml, environment or command line
│   ├── BadScraper          a scraper that is wrong as written (label, option, yield)
│   ├── BadTarget           `file.py:name` that does not lead to a scraper
│   ├── UnknownRun          no run of that id in this engine
│   └── BeingMoved          a run on its way between two stores, which cannot be changed meanwhile
└── EngineError             the store cannot do its work
    ├── EngineUnavailable   not reachable, locked, restarting: may pass, so it is worth trying again
    ├── EngineRefused       there, but not as asked (password, rights, version): somebody has to change something
    │   └── NoStore         the server is there, and nothing of Shoal in it yet
    ├── EngineFull          no space left
    └── EngineBroken        corrupt, foreign or of another version

Signal                      what a handler raises to say how a task ends
├── Retry                   try again later; counts as an attempt
└── Drop                    not wanted; ends the task without a failure

The message of a ShoalError is a whole sentence that says what is wrong, where, and what to do. It is shown as it is.
"""

from __future__ import annotations


class ShoalError(Exception):
    """Base of all errors that Shoal raises on purpose."""


class UsageError(ShoalError):
    """What was asked for cannot be done as asked."""


class BadURL(UsageError):
    """A URL was refused at the door. `reason` is a short phrase, without the URL."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        shown = url if len(url) <= 120 else f"{url[:100]}… ({len(url)} characters)"
        super().__init__(f"The URL {shown!r} was refused: {reason}.")


class BadSettings(UsageError):
    """A setting is unknown or has a value that cannot be used."""


class BadScraper(UsageError):
    """A scraper is wrong as written."""


class BadTarget(UsageError):
    """A target on the command line does not lead to a scraper."""


class UnknownRun(UsageError):
    """No run of that id exists in this engine."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"There is no run {run_id!r} in this engine. `shoal runs` lists those that exist.")


class BeingMoved(UsageError):
    """A run is on its way between two stores, and cannot be changed meanwhile."""

    def __init__(self, run_id: str, *, arriving: bool) -> None:
        self.run_id = run_id
        super().__init__(
            f"The run {run_id!r} is still being moved to this store. Give the same `shoal move` again to finish that."
            if arriving
            else f"The run {run_id!r} is being moved to another store and cannot be changed. Wait for that to end, or "
            f"keep it here with `shoal resume {run_id}`."
        )


class EngineError(ShoalError):
    """The store behind the frontier cannot do its work."""


class EngineUnavailable(EngineError):
    """The store cannot be reached or written to at the moment. Workers wait until it can."""


class EngineRefused(EngineError):
    """The store is not one that can be used as asked. Trying again will not help."""


class NoStore(EngineRefused):
    """There is no store yet where one must exist already."""


class EngineFull(EngineError):
    """The store has no space left. What was acknowledged before is safe."""


class EngineBroken(EngineError):
    """The store holds something that this version cannot read."""


class Signal(Exception):
    """Base of what a handler raises to end its task in another way than by returning."""


class Retry(Signal):
    """Try this task again, `after` seconds from now (default: the usual growing delay). Counts as one attempt."""

    def __init__(self, reason: str = "asked by the handler", *, after: float | None = None) -> None:
        self.reason = reason
        self.after = after
        super().__init__(reason)


class Drop(Signal):
    """This page is not wanted. The task ends as dropped; nothing it yielded is kept."""

    def __init__(self, reason: str = "asked by the handler") -> None:
        self.reason = reason
        super().__init__(reason)

"""The fetcher protocol, the seam between a worker and the network: one method, values in, values out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import IO, Protocol

from multidict import CIMultiDictProxy

from shoal.core.outcome import Blame


@dataclass(frozen=True, slots=True)
class Response:
    """An answer with its whole body, decoded from its transfer and content encodings (not from its charset).

    `body` is empty if the request said where else the body is to go.
    """

    url: str
    status: int
    headers: CIMultiDictProxy[str]
    body: bytes
    received: int = 0
    """Bytes that came over the wire for the body, before decompression."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """One request to be sent now. `timeout`: seconds for the whole exchange."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    timeout: float = 30.0
    max_bytes: int = 32 * 1024 * 1024
    exit: str = "direct"
    jar: str = ""
    """Cookies are kept apart by this name: the scraper's, or the job's where web clients must not share any."""
    spool: IO[bytes] | None = None
    """Where the body is written to, from its beginning, instead of being held in memory."""
    guarded: bool = False
    """Only a public address may be connected to, whatever the URL says (`shoal.fetch.guard.rules`)."""
    cut: bool = False
    """A body that is larger than `max_bytes` is cut there, instead of being refused."""


class Stage(StrEnum):
    """How far a request came that has no usable answer."""

    NETWORK = "network"
    """Nothing was reached: there is no route, or no name server answers. It may be this machine that is offline."""
    CONNECTION = "connection"
    """The site could not be connected to."""
    ANSWER = "answer"
    """It was sent, or may have been."""


class FetchError(Exception):
    """No usable answer. `text` is a short phrase; `blame` says what to charge; `permanent`: trying again is useless.

    `doubtful`: blame lies with the exit or with what is behind it; another exit will show. `stage`: how far it came.
    """

    def __init__(
        self,
        text: str,
        blame: Blame,
        *,
        permanent: bool = False,
        doubtful: bool = False,
        stage: Stage = Stage.ANSWER,
    ) -> None:
        self.text = text
        self.blame = blame
        self.permanent = permanent
        self.doubtful = doubtful
        self.stage = stage
        super().__init__(text)


class Gate(Protocol):
    """Called at the very moment before the request goes out on its connection. May raise TooLate to stop it."""

    def __call__(self) -> None: ...


class Fetcher(Protocol):
    """Makes requests through one kind of client. Never follows redirects, never retries."""

    async def fetch(self, fetch: Fetch, gate: Gate) -> Response:
        """Send and read it all. Raises FetchError or TooLate; anything else is a bug."""
        ...

    async def close(self) -> None: ...

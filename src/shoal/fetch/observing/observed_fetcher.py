"""A fetcher that tells observers of each request that was made, and how long each phase of it took.

It stands around the fetcher of a worker only where somebody wants to know: nobody else pays for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Protocol

from shoal.core.clock import Clock, Moment
from shoal.fetch.protocol import Fetch, Fetcher, FetchError, Gate, Response


@dataclass(frozen=True, slots=True)
class ObservedRequest:
    """A request that was sent, or could not be. Either `response` or `error` is None.

    In milliseconds: `connected`: until it could be written, so name lookup, TCP and TLS, or next to nothing on a
    connection that was kept; None = it never was. `first_byte`: from there to the first byte of the body; None = not
    looked at, or there was none. `took`: all of it.
    """

    fetch: Fetch
    response: Response | None
    error: FetchError | None
    at: Moment
    took: float
    connected: float | None = None
    first_byte: float | None = None


class RequestObserver(Protocol):
    """Is told of each request when it is over. The answer is handed on when this has ended."""

    async def observe(self, made: ObservedRequest) -> None: ...


class ObservedFetcher:
    """A `Fetcher` around another. `first_byte`: that moment is looked for, too, at the price of a copy of the body."""

    def __init__(
        self, fetcher: Fetcher, observers: Sequence[RequestObserver], clock: Clock, *, first_byte: bool = False
    ) -> None:
        self._fetcher = fetcher
        self._observers = observers
        self._clock = clock
        self._first_byte = first_byte

    async def fetch(self, fetch: Fetch, gate: Gate) -> Response:
        began, at = self._clock.elapsed(), self._clock.now()
        sent: list[float] = []

        def passing() -> None:
            gate()
            sent.append(self._clock.elapsed())

        spool = _TimedBody(self._clock) if self._first_byte and fetch.spool is None and not fetch.cut else None
        response: Response | None = None
        error: FetchError | None = None
        try:
            response = await self._fetcher.fetch(fetch if spool is None else replace(fetch, spool=spool), passing)
            if spool is not None:
                response = replace(response, body=spool.getvalue())
        except FetchError as failed:
            error = failed
            raise
        finally:
            if response is not None or error is not None:  # anything else: it was given back, and never sent
                arrived = spool.arrived if spool is not None else None
                made = ObservedRequest(
                    fetch, response, error, at, self._clock.elapsed() - began,
                    connected=sent[-1] - began if sent else None,
                    first_byte=arrived - sent[-1] if arrived is not None and sent else None,
                )  # fmt: skip
                for observer in self._observers:
                    await observer.observe(made)
        return response

    async def close(self) -> None:
        await self._fetcher.close()


class _TimedBody(BytesIO):
    """A body in memory that knows when it began to come. `arrived`: None = nothing came."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.arrived: float | None = None

    def write(self, piece: bytes, /) -> int:  # type: ignore[override]  # bytes are all that it is given
        if self.arrived is None:
            self.arrived = self._clock.elapsed()
        return super().write(piece)

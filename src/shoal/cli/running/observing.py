"""What watches the requests of a command: a log line for each (`-v`), an archive of the answers (`--warc`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.core.clock import SystemClock
from shoal.errors import UsageError
from shoal.runs.export.places.local_file import IfExists, file_for

if TYPE_CHECKING:
    from shoal.fetch.observing.observed_fetcher import RequestObserver
    from shoal.fetch.protocol import Fetcher

Around = Callable[["Fetcher"], "Fetcher"]


@contextmanager
def observing(*, verbose: bool, warc: str | None) -> Iterator[Around | None]:
    """What is to stand around the fetcher of a worker; None = nobody wants to know. Raises UsageError."""
    observers: list[RequestObserver] = []
    with ExitStack() as stack:
        if verbose:
            from shoal.fetch.observing.request_log import RequestLines  # noqa: PLC0415 - for those who ask

            observers.append(RequestLines())
        if warc is not None:
            from shoal.fetch.observing.warc_archive import opened_archive  # noqa: PLC0415 - for those who ask

            try:
                observers.append(stack.enter_context(opened_archive(Path(warc))))
            except OSError as error:
                raise UsageError(f"The archive {warc!r} cannot be written: {error.strerror}.") from None
        if not observers:
            yield None
            return
        from shoal.fetch.observing.observed_fetcher import ObservedFetcher  # noqa: PLC0415 - for those who ask

        yield lambda fetcher: ObservedFetcher(fetcher, observers, SystemClock())


def check_warc(warc: str | None) -> None:
    """Raises UsageError, before anything is fetched, if there can be no such archive."""
    if warc is None:
        return
    if not warc.lower().endswith(".warc.gz"):
        raise UsageError(f"The archive {warc!r} must be called NAME.warc.gz.")
    file_for(warc, IfExists.APPEND)


def logging_settings(*, verbose: bool, log_file: str | None) -> dict[str, Any]:
    """The settings that these options stand for."""
    return {"log_level": "info" if verbose else None, "log_file": log_file}

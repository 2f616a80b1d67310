"""URLs that a user gives: one by one, in a file of any length, or on standard input."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.core.url import NormalURL, normalise
from shoal.errors import BadURL, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SHOWN = 20
STDIN = "-"


class URLList:
    """A stream of usable URLs, to be read once. Those that are not are counted, and the first ones kept with reasons.

    Lines that are blank or begin with `#` are passed over. Never holds more than one line.
    """

    def __init__(self, single: Iterable[str], file: str | Path | None) -> None:
        self._single = single
        self._file = file
        self.accepted = 0
        self.refused = 0
        self.complaints: list[str] = []

    def __iter__(self) -> Iterator[str]:
        for number, url in enumerate(self._single, start=1):
            yield from self._checked(f"URL {number}", url)
        if self._file is None:
            return
        with _lines_of(self._file) as lines:
            for number, line in enumerate(lines, start=1):
                url = line.strip().removeprefix("\ufeff")
                if url and not url.startswith("#"):
                    yield from self._checked(f"line {number}", url)

    def _checked(self, place: str, url: str) -> Iterator[str]:
        try:
            normal = normalise(url)
        except BadURL as error:
            self.refused += 1
            if len(self.complaints) < SHOWN:
                shown = url if len(url) <= 100 else f"{url[:80]}… ({len(url)} characters)"
                self.complaints.append(f"{place}: {shown}: {error.reason}")
            return
        self.accepted += 1
        yield NormalURL(normal)


def check_file(file: str | Path) -> None:
    """Raises UsageError if the file cannot be read, before anything else is done."""
    if file != STDIN:
        with _lines_of(file):
            return


@contextmanager
def _lines_of(file: str | Path) -> Iterator[Iterator[str]]:
    """The lines of a file, read as they are needed. Bytes that are no UTF-8 stand for what makes a URL unusable."""
    if file == STDIN:
        sys.stdin.reconfigure(encoding="utf-8-sig", errors="replace")  # type: ignore[union-attr]  # a TextIOWrapper here
        yield iter(sys.stdin)
        return
    try:
        stream = Path(file).open(encoding="utf-8-sig", errors="replace")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        raise UsageError(f"There is no file {str(file)!r}.") from None
    except OSError as error:
        raise UsageError(f"{str(file)!r} cannot be read: {error.strerror}.") from None
    with stream:
        yield iter(stream)

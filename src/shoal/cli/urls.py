"""URLs that a user gives: on the command line, in a file of any length, or on standard input."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.cli.frame import say
from shoal.cli.text import count, plain
from shoal.errors import BadURL, UsageError
from shoal.url import NormalURL, normalise

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SHOWN = 20
STDIN = "-"


class GivenURLs:
    """A stream of usable URLs, to be read once. Those that are not are counted, and the first ones kept with reasons.

    Lines that are blank or begin with `#` are passed over. Never holds more than one line.
    """

    def __init__(self, single: Sequence[str], file: str | None) -> None:
        self._single = single
        self._file = file
        self.accepted = 0
        self.refused = 0
        self._complaints: list[str] = []

    def __iter__(self) -> Iterator[str]:
        for url in self._single:
            yield from self._checked("--url", url)
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
            if len(self._complaints) < SHOWN:
                shown = url if len(url) <= 100 else f"{url[:80]}… ({len(url)} characters)"
                self._complaints.append(f"{place}: {plain(shown)}: {error.reason}")
            return
        self.accepted += 1
        yield NormalURL(normal)

    def report(self) -> None:
        """Say which URLs were refused and why, if any were."""
        if not self.refused:
            return
        say(f"{count(self.refused, 'URL')} refused:")
        for complaint in self._complaints:
            say(f"  {complaint}")
        if self.refused > len(self._complaints):
            say(f"  … and {self.refused - len(self._complaints):,} more")


def check_file(file: str) -> None:
    """Raises UsageError if the file cannot be read, before anything else is done."""
    if file != STDIN:
        with _lines_of(file):
            return


@contextmanager
def _lines_of(file: str) -> Iterator[Iterator[str]]:
    """The lines of a file, read as they are needed. Bytes that are no UTF-8 stand for what makes a URL unusable."""
    if file == STDIN:
        sys.stdin.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]  # a TextIOWrapper here
        yield iter(sys.stdin)
        return
    try:
        stream = Path(file).open(encoding="utf-8", errors="replace")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        raise UsageError(f"There is no file {file!r}.") from None
    except OSError as error:
        raise UsageError(f"{file!r} cannot be read: {error.strerror}.") from None
    with stream:
        yield iter(stream)

"""The URLs of a sitemap, printed while it is read: the work of a worker, on a store that is thrown away afterwards."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from shoal.api.scraper import Scraper
from shoal.cli.output.exit_codes import FAILURES, INTERRUPTED, OK, complain, say
from shoal.cli.output.text import plain
from shoal.cli.running.interrupt import interruptible
from shoal.config.apply import configure
from shoal.core.url import NormalURL, without_credentials
from shoal.errors import UsageError
from shoal.frontier.open import open_engine
from shoal.runs.export.places.local_file import writing
from shoal.runs.seeding import seed
from shoal.runs.worker_options import worker_options
from shoal.work.task.read_sitemap import resolved
from shoal.work.worker import Worker

if TYPE_CHECKING:
    from shoal.api.sitemap import Sitemap, SitemapOrder
    from shoal.config.settings import Settings
    from shoal.frontier.contract.engine import Engine
    from shoal.intake.sitemap_xml import SitemapEntry
    from shoal.work.task.attempt import Attempt

RUN = "sitemap"


class SitemapPrinter:
    """One call of `shoal sitemap`. `where`: None = standard output."""

    def __init__(
        self, settings: Settings, asked: Sitemap, where: Path | None, *, limit: int | None, as_data: bool
    ) -> None:
        self._settings = settings
        self._where = where
        self._limit = limit
        self._as_data = as_data
        self._printed = 0
        self._failure: OSError | None = None
        self._scraper = Scraper("sitemap", sitemaps=[asked])
        self._scraper.page(lambda _page: None)
        configure(self._scraper, settings)

    async def print(self) -> int:
        """Read it all, or as much as is wanted. Answers the exit code."""
        with TemporaryDirectory(prefix="shoal-sitemap-") as folder:
            engine = await open_engine(f"sqlite:///{Path(folder) / 'sitemap.db'}", create=True)
            try:
                with writing(self._where) as self._stream:
                    interrupted = await self._work(engine)
                    if self._failure is not None:
                        raise self._failure
            except BrokenPipeError:
                raise
            except OSError as error:
                raise UsageError(f"The output could not be written: {error.strerror}.") from error
            else:
                return INTERRUPTED if interrupted else await self._verdict(engine)
            finally:
                await engine.close()

    async def _work(self, engine: Engine) -> bool:
        """True = the user has interrupted it."""
        await seed(engine, self._scraper, RUN)
        options = worker_options(self._settings, drain=True)
        self._worker = Worker(engine, [self._scraper], options, finds=self._found)
        with interruptible(self._worker.abort, self._worker.abort) as interruption:
            await self._worker.run()
        return interruption.times > 0

    async def _found(
        self, attempt: Attempt, scraper: Scraper, order: SitemapOrder, entries: list[SitemapEntry]
    ) -> None:
        stream: BinaryIO = self._stream
        try:
            for entry, url in zip(entries, resolved(attempt, [entry.url for entry in entries]), strict=True):
                if self._failure is not None or self._printed == self._limit:
                    self._worker.abort()
                    break
                if type(url) is NormalURL:
                    stream.write(self._line(attempt, entry, url))
                    self._printed += 1
            stream.flush()
        except OSError as error:
            self._failure = error
            self._worker.abort()

    def _line(self, attempt: Attempt, entry: SitemapEntry, url: str) -> bytes:
        if self._as_data:
            return msgspec.json.encode({"url": str(url), "lastmod": entry.lastmod, "sitemap": attempt.url}) + b"\n"
        return (f"{url}\t{plain(entry.lastmod)}\n" if entry.lastmod else f"{url}\n").encode()

    async def _verdict(self, engine: Engine) -> int:
        dead = await engine.reader.dead(RUN)
        for letter in dead:
            complain(f"{plain(without_credentials(letter.url))}: {letter.reason.text}.")
        dropped = (await engine.reader.run(RUN)).counters.dropped
        if dropped:
            say(f"Not read, because robots.txt disallows it: {dropped}.")
        return FAILURES if dead or (dropped and not self._printed) else OK

"""HTTP cache and change detection: what is remembered of pages from visit to visit, answers and content hashes.

Of those who want the same answer at once, one asks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from shoal.api.scraper import Scraper
from shoal.core.task import Kind
from shoal.fetch.stored_answer import LARGEST
from shoal.frontier.contract.cache import Cache
from shoal.work.store.single_flight import SingleFlight
from shoal.work.task.attempt import Attempt
from shoal.work.task.recollection import Recollection, jar_of


class PageHistory:
    """Recollections for the tasks of scrapers that remember anything. `largest`: bytes of the largest body kept.

    `single_flight`: so that of those who want the same answer at once, one asks for it.
    `has_cookies`: whether a request by this exit, with this jar, for this URL would be sent with cookies.
    """

    def __init__(
        self,
        cache: Cache,
        single_flight: SingleFlight,
        has_cookies: Callable[[str, str, str], bool],
        largest: int = LARGEST,
    ) -> None:
        self._cache = cache
        self._single_flight = single_flight
        self._has_cookies = has_cookies
        self._largest = largest

    async def recall(self, attempt: Attempt, scraper: Scraper) -> None:
        """Give the attempt a recollection of its page, if it is of the kind that is remembered. While another task asks
        for the page, and the answer may be for this one too, that is waited for.

        Raises TooLate if it then has to be asked for, but by another lease; EngineError if the store fails.
        """
        held, task = attempt.held, attempt.task
        if task.extra.kind is not Kind.PAGE or not (scraper.remembers or task.extra.every):
            return
        has_cookies = partial(self._has_cookies, attempt.lease.exit, jar_of(task))
        # Known to the attempt at once: if it is cut short, what it has taken is let go of.
        attempt.recollection = recollection = Recollection(task, scraper, self._largest, has_cookies)
        await recollection.look(self._cache, held.now)
        await self._single_flight.board(held, recollection, scraper.timeout)

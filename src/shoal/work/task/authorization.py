"""Who a request is from: `Authorization` for the origins that a scraper has credentials for, and for no other."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from shoal.api.auth import BasicAuth, DigestAuth, origin_of
from shoal.api.scraper import Scraper
from shoal.core.outcome import Blame
from shoal.core.url import without_credentials
from shoal.fetch.digest import Challenge, challenge_in
from shoal.fetch.protocol import Fetch, FetchError, Response
from shoal.work.task.attempt import Attempt

AUTHORIZATION = "Authorization"

MOST_ASKED = 3
"""So often a page is asked for again, within one attempt, because it wants to know who asks."""

MOST_CHALLENGES = 1000
"""Origins whose last challenge is remembered, so that not every request has to be made twice."""


@dataclass(slots=True)
class _Asked:
    challenge: Challenge
    used: int = 0


class Authorizations:
    """Answers challenges. Each worker has its own, and is asked once by each site."""

    def __init__(self) -> None:
        self._asked: OrderedDict[tuple[str, str], _Asked] = OrderedDict()

    def header(self, scraper: Scraper, url: str, method: str, others: Mapping[str, str]) -> dict[str, str]:
        """The header that says who asks; none where the request has its own among the `others`, where there are no
        credentials for this origin, or where it has not asked for them yet."""
        origin = origin_of(url)
        known = scraper.auth.get(origin)
        if known is None or any(name.lower() == "authorization" for name in others):
            return {}
        if isinstance(known, BasicAuth):
            return {AUTHORIZATION: known.header()}
        asked = self._asked.get((scraper.name, origin))
        if asked is None:
            return {}
        asked.used += 1
        plain = without_credentials(url)
        target = plain[plain.index("/", 8) :]
        own_nonce = secrets.token_hex(8)
        answer = asked.challenge.answer(
            known.user, known.password, method, target, count=asked.used, own_nonce=own_nonce
        )
        return {AUTHORIZATION: answer}

    def can_answer(self, attempt: Attempt, scraper: Scraper, request: Fetch, response: Response) -> bool:
        """Whether a 401 asks for something that can be answered now, with a further request of the same attempt.

        False where the answer to a new challenge was refused: the credentials are wrong, and it is not asked on.
        Raises FetchError where there could be no end to it: this lease allows no further request, and the next one
        might be told again that it comes too late.
        """
        place = (scraper.name, origin_of(request.url))
        if not isinstance(scraper.auth.get(place[1]), DigestAuth):
            return False
        challenge = challenge_in(response.headers.getall("WWW-Authenticate", ()))
        if challenge is None:
            return False
        last, sent = self._asked.get(place), request.headers.get(AUTHORIZATION)
        self._remember(place, challenge)
        attempt.challenges += 1
        if sent is not None and last is not None and last.used <= 1 and last.challenge.nonce in sent:
            return False
        if sent is not None and not attempt.held.may_ask_again:
            raise FetchError("HTTP 401, with a new challenge for every request", Blame.URL)
        return attempt.challenges <= MOST_ASKED

    def _remember(self, place: tuple[str, str], challenge: Challenge) -> None:
        self._asked[place] = _Asked(challenge)
        if len(self._asked) > MOST_CHALLENGES:
            self._asked.popitem(last=False)

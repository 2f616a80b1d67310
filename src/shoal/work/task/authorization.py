"""Who a request is from: `Authorization` for the origins that a scraper has credentials for, and for no other."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from shoal.api.auth import BasicAuth, DigestAuth, origin_of
from shoal.api.scraper import Scraper
from shoal.core.url import without_credentials
from shoal.fetch.digest import Challenge, challenge_in
from shoal.fetch.protocol import Response
from shoal.work.task.attempt import Attempt

AUTHORIZATION = "Authorization"

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

    def header(self, attempt: Attempt, scraper: Scraper, others: Mapping[str, str]) -> dict[str, str]:
        """The header that says who asks; none where the request has its own among the `others`, where there are no
        credentials for this origin, or where it has not asked for them yet."""
        origin = origin_of(attempt.url)
        known = scraper.auth.get(origin)
        if known is None or any(name.lower() == "authorization" for name in others):
            return {}
        if isinstance(known, BasicAuth):
            return {AUTHORIZATION: known.header()}
        asked = self._asked.get((scraper.name, origin))
        if asked is None:
            return {}
        asked.used += 1
        attempt.answers_first = asked.used == 1
        plain = without_credentials(attempt.url)
        target = plain[plain.index("/", 8) :]
        own_nonce = secrets.token_hex(8)
        answer = asked.challenge.answer(
            known.user, known.password, attempt.extra.method, target, count=asked.used, own_nonce=own_nonce
        )
        return {AUTHORIZATION: answer}

    def can_answer(self, attempt: Attempt, scraper: Scraper, response: Response) -> bool:
        """Whether a 401 asks for something that can be answered now, with a further request.

        False where the first answer to a challenge was refused: then the credentials are wrong. All other refusals
        bring a new challenge, which somebody answers first; so there is an end to it, however many ask at once.
        """
        place = (scraper.name, origin_of(attempt.url))
        if attempt.answers_first or not isinstance(scraper.auth.get(place[1]), DigestAuth):
            return False
        challenge = challenge_in(response.headers.getall("WWW-Authenticate", ()))
        if challenge is None:
            return False
        self._asked[place] = _Asked(challenge)
        if len(self._asked) > MOST_CHALLENGES:
            self._asked.popitem(last=False)
        return True

"""Basic and digest authentication: who is told what, and who is not."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest

from shoal import BasicAuth, DigestAuth, Page, Request, Scraper
from shoal.frontier.sqlite.engine import SqliteEngine
from shoal.testing.hostile.call import Call
from shoal.testing.hostile_site import HostileSite
from support.working import crawl

SAID = re.compile(r'([\w-]+)=(?:"([^"]*)"|([^,\s]+))')


class DigestSite:
    """Lets in who knows the password, by rules of its own. `lives`: how often a nonce may be used."""

    def __init__(self, site: HostileSite, *, lives: int = 1000, known: str = "secret") -> None:
        self.sent: list[str | None] = []
        self._lives = lives
        self._known = known
        self._nonces: dict[str, int] = {}
        site._site.routes["digest"] = self._answer

    async def _answer(self, call: Call, _rest: list[str]) -> None:
        given = call.headers.get("authorization")
        self.sent.append(given)
        said = {found[1]: found[2] or found[3] for found in SAID.finditer(given or "")}
        nonce = said.get("nonce", "")
        if given is not None and self._is_right(call, said) and self._nonces.get(nonce, 0) > 0:
            self._nonces[nonce] -= 1
            await call.answer("<h1>in</h1>")
            return
        new = f"n{len(self.sent)}"
        self._nonces[new] = self._lives
        asks = f'Digest realm="x", nonce="{new}", qop="auth,auth-int", algorithm=SHA-256, opaque="o"'
        await call.answer("<h1>who?</h1>", ("WWW-Authenticate", asks), status=401)

    def _is_right(self, call: Call, said: dict[str, str]) -> bool:
        def digest(*parts: str) -> str:
            return hashlib.sha256(":".join(parts).encode()).hexdigest()

        secret = digest("me", "x", self._known)
        asked = digest(call.method, call.target)
        right = digest(secret, said["nonce"], said["nc"], said["cnonce"], "auth", asked)
        return said["response"] == right and said["uri"] == call.target and said["opaque"] == "o"


def asking(**options: Any) -> Scraper:
    scraper = Scraper("test", **{"delay": 0.0, "obey_robots": False, **options})

    @scraper.page
    def read(page: Page) -> dict[str, object]:
        is_echo = page.body[:1] == b"{"
        sent = page.json("headers.authorization") if is_echo else None
        return {"url": page.url, "h1": None if is_echo else page.text("h1"), "sent": sent}

    return scraper


@pytest.mark.parametrize("auth", [("me", "secret"), BasicAuth("me", "secret")])
async def test_basic_goes_to_the_origin_of_the_start_and_not_where_a_redirect_or_a_link_leads(
    engine: SqliteEngine, site: HostileSite, auth: Any
) -> None:
    other = site.url("/echo", host="127.0.0.2")
    urls = [site.url("/echo"), site.url(f"/redirect-to?url={other}")]
    crawled = await crawl(engine, asking(start=urls, auth=auth))
    sent = {item["url"]: item["sent"] for item in crawled.items}
    assert sent == {site.url("/echo"): "Basic bWU6c2VjcmV0", other: None}


async def test_a_header_of_ones_own_goes_first(engine: SqliteEngine, site: HostileSite) -> None:
    scraper = asking(auth={site.url(""): ("me", "secret")})
    scraper.start_urls = (Request(site.url("/echo"), headers={"authorization": "Bearer x"}),)
    [item] = (await crawl(engine, scraper)).items
    assert item["sent"] == "Bearer x"


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_challenge_is_answered_on_the_same_clock_and_remembered(
    engine: SqliteEngine, site: HostileSite, concurrency: int
) -> None:
    digest = DigestSite(site)
    urls = [site.url(f"/digest/{n}?x=1") for n in range(5)]
    scraper = asking(start=urls, auth=DigestAuth("me", "secret"), delay=0.05, concurrency=concurrency)
    crawled = await crawl(engine, scraper)
    assert [item["h1"] for item in crawled.items] == ["in"] * 5
    assert not crawled.dead
    if concurrency == 1:
        assert [given is None for given in digest.sent] == [True] + [False] * 5
    assert site.log.smallest_gap() >= 0.05
    assert "secret" not in str(digest.sent)


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_site_that_wants_a_new_answer_every_time_gets_it(
    engine: SqliteEngine, site: HostileSite, concurrency: int
) -> None:
    DigestSite(site, lives=1)
    urls = [site.url(f"/digest/{n}") for n in range(6)]
    scraper = asking(start=urls, auth=DigestAuth("me", "secret"), delay=0.02, concurrency=concurrency, attempts=1)
    crawled = await crawl(engine, scraper)
    assert (len(crawled.items), crawled.dead) == (6, {})


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_wrong_password_is_not_tried_on_and_on(
    engine: SqliteEngine, site: HostileSite, concurrency: int
) -> None:
    """Also where several ask at once, and each of them is told something new."""
    digest = DigestSite(site, known="other")
    urls = [site.url(f"/digest/{n}") for n in range(3)]
    scraper = asking(start=urls, auth=DigestAuth("me", "secret"), delay=0.01, concurrency=concurrency)
    crawled = await crawl(engine, scraper)
    assert {letter.reason.text for letter in crawled.dead.values()} == {"HTTP 401"}
    assert len(digest.sent) <= 2 * len(urls) * concurrency


async def test_a_digest_is_for_its_origin_alone(engine: SqliteEngine, site: HostileSite) -> None:
    digest = DigestSite(site)
    scraper = asking(auth={site.url(""): DigestAuth("me", "secret")})
    scraper.start_urls = (site.url("/digest/1", host="127.0.0.2"),)
    crawled = await crawl(engine, scraper)
    assert crawled.only_death.reason.text == "HTTP 401"
    assert digest.sent == [None]

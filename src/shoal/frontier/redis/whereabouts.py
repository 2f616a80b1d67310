"""Where a URL is: in line, aside, with a worker, or dead. Looked for a page at a time, so that nobody waits for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

import msgspec

from shoal.core.clock import Moment
from shoal.core.outcome import Reason
from shoal.core.task import NO_EXTRA, Extra, State, accepted_url
from shoal.frontier.contract.frontier import Run
from shoal.frontier.contract.reader import Whereabouts
from shoal.frontier.redis.codec.dead_letters import Letter, decode_letter
from shoal.frontier.redis.codec.encoding import encode, opaque
from shoal.frontier.redis.codec.tasks import Body, seen_row
from shoal.frontier.redis.store.client import RedisStore
from shoal.frontier.shared.endings import last_of, names_of, page_of
from shoal.frontier.shared.whereabouts_rows import is_held

PAGE = 2000
OVERLAP = 200
"""Pages of a list overlap by so many: its head may be taken away while one looks."""


class WaitingEntry(msgspec.Struct, array_like=True, frozen=True):
    """A task as the scripts keep it, until it dies. `expires_at` 0 = never."""

    id: int
    priority: int
    run: int
    expires_at: Moment
    attempts: int
    crashes: int
    body: Body


_entry = msgspec.msgpack.Decoder(WaitingEntry).decode
_reason = msgspec.json.Decoder(Reason).decode
_extra = msgspec.json.Decoder(Extra).decode
_endings = msgspec.msgpack.Decoder(tuple[int, list[tuple[str, int, str | bool, str | bool]]]).decode

Known = dict[str, Any]
"""What is known of a task, by the fields of `Whereabouts`."""


class Search:
    """The search for one URL of a site."""

    def __init__(self, store: RedisStore, site: str, url: str) -> None:
        self._store = store
        self._partition = store.partition_of(site)
        self._site = site
        self._url = url
        tail = url.partition("//")[2].encode()
        told = msgspec.json.encode(url)
        self._needles = [opaque(needle) for needle in (b"\x94" + encode(url), b'"first_url":' + told, b"@" + tail)]

    async def runs(self, key: bytes, run_id: str | None) -> list[int]:
        """The numbers of the runs that have seen the key (or of `run_id` only), newest first."""
        number, bucket = seen_row(key)
        found = await self._ask("find_seen", key=number, bucket=bucket, run=run_id)
        return sorted(found, reverse=True)

    async def live(self, now: Moment) -> dict[int, list[Known]]:
        """What is known of it, by run, where it waits or is leased, or has expired and nobody has noticed."""
        found: dict[int, list[Known]] = {}
        aside, lines = await self._ask("find_ready", site=self._site, needles=self._needles)
        for number, lane, pool, hits, groups in lines:
            for entry in self._entries([*hits, *[hit async for hit in self._overflowing(number, groups)]]):
                place = {"line": number, "site": self._site, "priority": entry.priority, "id": entry.id}
                ahead = await self._ask("count_ahead", **place)
                found.setdefault(entry.run, []).append(_known(entry, lane, pool, now) | {"ahead": ahead})
        if aside:
            async for _, lane, pool, packed, not_before in self._scan("find_aside"):
                for entry in self._entries([packed]):
                    later = {"not_before": not_before or None}
                    found.setdefault(entry.run, []).append(_known(entry, lane, pool, now) | later)
        async for _, lane, pool, packed, worker, exit_name, until in self._scan("find_leased"):
            for entry in self._entries([packed]):
                held = {"state": State.LEASED, "worker": worker.decode(), "exit": exit_name.decode()}
                held |= {"lease_until": until, "ended_at": None}
                found.setdefault(entry.run, []).append(_known(entry, lane, pool, now) | held)
        return found

    async def dead(self, run: int) -> list[Known]:
        """What is known of it as dead letters of a run."""
        return [
            _buried(letter, lane, pool)
            async for _, lane, pool, packed in self._scan("find_dead", run=run)
            if (letter := decode_letter(packed)).site == self._site and self._is_for_page(letter.body)
        ]

    async def endings(self, run: int) -> tuple[Moment, list[Known]]:
        """How it ended in a run, where it was not done; and since when what stands in line has ended with its job."""
        emptied_at, found = _endings(
            await self._ask("find_endings", run=run, names=[*map(opaque, names_of(self._url))])
        )
        return emptied_at, [_ended(*ending, self._url) for ending in found]

    async def _overflowing(self, line: int, groups: Iterable[tuple[int, int, int]]) -> AsyncIterator[bytes]:
        for priority, length, is_sorted in groups:
            for start in range(0, length, PAGE - OVERLAP):
                place = {"line": line, "site": self._site, "priority": priority, "sorted": bool(is_sorted)}
                for hit in await self._ask("find_overflow", needles=self._needles, **place, **_page(start)):
                    yield hit

    async def _scan(self, verb: str, **question: Any) -> AsyncIterator[list[Any]]:
        cursor = b"0"
        while True:
            asked = question | {"site": self._site, "needles": self._needles, "cursor": cursor.decode()}
            cursor, rows = await self._ask(verb, **asked)
            for row in rows:
                yield row
            if cursor == b"0":
                return

    async def _ask(self, verb: str, **question: Any) -> Any:
        return await self._store.call(verb, self._partition, question)

    def _entries(self, packed: Iterable[bytes]) -> Iterable[WaitingEntry]:
        """Those that are for this page, and do not only mention it."""
        return [entry for each in packed if self._is_for_page((entry := _entry(b"\x97" + each)).body)]

    def _is_for_page(self, body: Body) -> bool:
        return page_of(body.url, _told(body)) == self._url


def whereabouts(run: Run, places: Sequence[Known], emptied_at: Moment) -> Whereabouts:
    """What was found out about one run. Nothing = it is done. `emptied_at`: what waits has ended then, 0 = it waits."""
    found = []
    for known in places or [{"state": State.DONE}]:
        if known["state"] is State.WAITING and emptied_at:
            known |= {"state": State.CANCELLED, "ended_at": emptied_at}
        held = is_held(known["state"], run.state)
        found.append(Whereabouts(run.run_id, run.scraper, run.state, **known, held=held))
    return last_of(found)


def _page(start: int) -> dict[str, int]:
    return {"from": start, "last": start + PAGE - 1}


def _told(body: Body) -> Extra:
    return NO_EXTRA if body.extra is None else _extra(body.extra)


def _known(entry: WaitingEntry, lane: bytes, pool: bytes, now: Moment) -> Known:
    over = 0 < entry.expires_at <= now
    return {
        "state": State.EXPIRED if over else State.WAITING,
        "ended_at": entry.expires_at if over else None,
        "url": accepted_url(entry.body.url, _told(entry.body)),
        "task": entry.id,
        "lane": lane.decode(),
        "pool": pool.decode(),
        "expires_at": entry.expires_at or None,
        "attempts": entry.attempts,
        "crashes": entry.crashes,
    }


def _ended(how: str, at: Moment, reason: str | bool, spelling: str | bool, page: str) -> Known:
    why = _reason(reason) if isinstance(reason, str) else None
    return {"state": State(how), "ended_at": at, "reason": why, "url": spelling or page}


def _buried(letter: Letter, lane: bytes, pool: bytes) -> Known:
    return {
        "state": State.DEAD,
        "ended_at": letter.died_at,
        "url": accepted_url(letter.body.url, _told(letter.body)),
        "task": letter.id,
        "lane": lane.decode(),
        "pool": pool.decode(),
        "attempts": letter.attempts,
        "crashes": letter.crashes,
        "reason": _reason(letter.reason),
    }

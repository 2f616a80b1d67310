"""Where a URL is: in line, aside, with a worker, or dead. Looked for a page at a time, so that nobody waits for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec

from shoal.clock import Moment
from shoal.frontier.protocol import Run, Whereabouts
from shoal.frontier.redis.store import Store
from shoal.frontier.redis.wire import Body, Letter, decode_letter, encode, opaque, seen_row
from shoal.outcome import Reason
from shoal.task import RunState, State

PAGE = 2000
OVERLAP = 200
"""Pages of a list overlap by so many: its head may be taken away while one looks."""


class Entry(msgspec.Struct, array_like=True, frozen=True):
    """A task as the scripts keep it, until it dies. `expires_at` 0 = never."""

    id: int
    priority: int
    run: int
    expires_at: Moment
    attempts: int
    crashes: int
    body: Body


_entry = msgspec.msgpack.Decoder(Entry).decode
_reason = msgspec.json.Decoder(Reason).decode


class Search:
    """The search for one URL of a site."""

    def __init__(self, store: Store, site: str, url: str) -> None:
        self._store = store
        self._partition = store.partition_of(site)
        self._site = site
        self._url = url
        self._needle = opaque(b"\x94" + encode(url))

    async def runs(self, key: bytes, run_id: str | None) -> list[int]:
        """The numbers of the runs that have seen the key (or of `run_id` only), newest first."""
        number, bucket = seen_row(key)
        found = await self._ask("find_seen", key=number, bucket=bucket, run=run_id)
        return sorted(found, reverse=True)

    async def live(self, now: Moment) -> dict[int, dict[str, Any]]:
        """What is known of it, by run, where it waits or is leased. What has expired is no longer there."""
        found: dict[int, dict[str, Any]] = {}
        aside, lines = await self._ask("find_ready", site=self._site, needle=self._needle)
        for number, lane, pool, hits, groups in lines:
            for entry in self._entries([*hits, *[hit async for hit in self._overflowing(number, groups)]]):
                place = {"line": number, "site": self._site, "priority": entry.priority, "id": entry.id}
                found[entry.run] = _known(entry, lane, pool) | {"ahead": await self._ask("count_ahead", **place)}
        if aside:
            async for _, lane, pool, packed, not_before in self._scan("find_aside"):
                for entry in self._entries([packed]):
                    found[entry.run] = _known(entry, lane, pool) | {"not_before": not_before or None}
        found = {run: known for run, known in found.items() if (known["expires_at"] or now + 1) > now}
        async for _, lane, pool, packed, worker, way_out, until in self._scan("find_leased"):
            for entry in self._entries([packed]):
                found[entry.run] = _known(entry, lane, pool) | {
                    "state": State.LEASED,
                    "worker": worker.decode(),
                    "exit": way_out.decode(),
                    "lease_until": until,
                }
        return found

    async def dead(self, run: int) -> dict[str, Any]:
        """What is known of it as a dead letter of a run; nothing, if it is none."""
        found: dict[str, Any] = {}
        async for _, lane, pool, packed in self._scan("find_dead", run=run):
            letter = decode_letter(packed)
            if letter.body.url == self._url and letter.site == self._site:
                found = _buried(letter, lane, pool)
        return found

    async def _overflowing(self, line: int, groups: Iterable[tuple[int, int, int]]) -> AsyncIterator[bytes]:
        for priority, length, is_sorted in groups:
            for start in range(0, length, PAGE - OVERLAP):
                place = {"line": line, "site": self._site, "priority": priority, "sorted": bool(is_sorted)}
                for hit in await self._ask("find_overflow", needle=self._needle, **place, **_page(start)):
                    yield hit

    async def _scan(self, verb: str, **question: Any) -> AsyncIterator[list[Any]]:
        cursor = b"0"
        while True:
            asked = question | {"site": self._site, "needle": self._needle, "cursor": cursor.decode()}
            cursor, rows = await self._ask(verb, **asked)
            for row in rows:
                yield row
            if cursor == b"0":
                return

    async def _ask(self, verb: str, **question: Any) -> Any:
        return await self._store.call(verb, self._partition, question)

    def _entries(self, packed: Iterable[bytes]) -> Iterable[Entry]:
        """Those that are of this URL, and do not only mention it."""
        return [entry for each in packed if (entry := _entry(b"\x97" + each)).body.url == self._url]


def whereabouts(run: Run, known: dict[str, Any]) -> Whereabouts:
    """What was found out about one run."""
    held = known.get("state") is State.WAITING and run.state is RunState.PAUSED
    return Whereabouts(run.run_id, run.scraper, run.state, **({"state": None} | known), held=held)


def _page(start: int) -> dict[str, int]:
    return {"from": start, "last": start + PAGE - 1}


def _known(entry: Entry, lane: bytes, pool: bytes) -> dict[str, Any]:
    return {
        "state": State.WAITING,
        "task": entry.id,
        "lane": lane.decode(),
        "pool": pool.decode(),
        "expires_at": entry.expires_at or None,
        "attempts": entry.attempts,
        "crashes": entry.crashes,
    }


def _buried(letter: Letter, lane: bytes, pool: bytes) -> dict[str, Any]:
    return {
        "state": State.DEAD,
        "task": letter.id,
        "lane": lane.decode(),
        "pool": pool.decode(),
        "attempts": letter.attempts,
        "crashes": letter.crashes,
        "reason": _reason(letter.reason),
    }

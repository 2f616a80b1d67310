"""Exits as people know them: the book, and what is said about them by hand. What claims heed: `slots.exit_health`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.core.clock import Millis
from shoal.core.storable import findable
from shoal.core.task import Policy
from shoal.frontier.contract.exits import ExitRecord, NewExit
from shoal.frontier.sqlite.enqueue import know_sites
from shoal.frontier.sqlite.reader import SqliteReader
from shoal.frontier.sqlite.settle import come_as_early
from shoal.frontier.sqlite.slots.rate_limits import mark_limited
from shoal.frontier.sqlite.store.transaction import Transaction, encode
from shoal.frontier.sqlite.store.writer import Writer

_pools = msgspec.json.Decoder(tuple[str, ...])
_bans = msgspec.json.Decoder(tuple[tuple[str, int], ...])


class SqliteExits:
    """The `Exits` of this engine."""

    def __init__(self, writer: Writer, reader: SqliteReader) -> None:
        self._writer = writer
        self._reader = reader

    async def put(self, exits: Sequence[NewExit]) -> None:
        rows = [(it.name, it.address, encode(it.pools).decode(), it.cap) for it in exits]
        await self._writer.call(lambda tx: tx.write_rows("put_exits", rows))

    async def remove(self, names: Sequence[str]) -> int:
        return await self._writer.call(lambda tx: tx.run("remove_exits", names=list(names)))

    async def all(self) -> Sequence[ExitRecord]:
        return [
            ExitRecord(name, address, _pools.decode(pools), cap, failures, until, live, _bans.decode(bans))
            for name, address, pools, cap, failures, until, live, bans in await self._reader.rows(
                "read_exits", now=await self._reader.now()
            )
        ]

    async def ban(self, name: str, wait: Millis, site: str | None = None) -> None:
        await self._writer.call(lambda tx: _ban(tx, name, wait, site))

    async def release(self, name: str, site: str | None = None) -> None:
        await self._writer.call(lambda tx: _release(tx, name, site))

    async def release_site(self, site: str) -> bool:
        return await self._writer.call(lambda tx: _release_site(tx, site))


def _release_site(tx: Transaction, site: str) -> bool:
    number = tx.value("find_site_number", site=findable(site))
    if number is None:
        return False
    tx.run("free_slots_at", site=number)
    tx.run("end_limits_at", site=number)
    tx.run("open_limited_sites", sites=[number])
    tx.run("end_setbacks", site=number, now=tx.now)
    come_as_early(tx, {number: tx.now})
    return True


def _ban(tx: Transaction, name: str, wait: Millis, site: str | None) -> None:
    until = tx.now + wait
    if site is None:
        tx.run("ban_exit", name=name, until=until)
        return
    tx.run("ban_exit", name=name, until=0)  # so that it is in the book
    # A site that nobody has visited yet takes the rules of the first run that comes.
    number = know_sites(tx, Policy(), [site])[site]
    tx.run("ban_slot", site=number, exit=name, until=until)
    tx.run("note_ban", site=number, exit=name)
    mark_limited(tx, [number])


def _release(tx: Transaction, name: str, site: str | None) -> None:
    if site is None:
        tx.run("release_exit", name=name)
    sites = tx.rows("find_bans", exit=name, site=site)
    if sites:
        tx.run("free_slots_of", exit=name, sites=sites)
        tx.run("end_limits_of", exit=name, sites=sites)
        tx.run("open_limited_sites", sites=sites)
        come_as_early(tx, dict.fromkeys(sites, tx.now))

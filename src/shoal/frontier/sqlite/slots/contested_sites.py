"""Letting go of strict rules: of a run that has ended, or has no work left at the site where others go on."""

from __future__ import annotations

from collections import defaultdict
from functools import reduce

import msgspec

from shoal.core.clock import Millis
from shoal.core.task import Policy
from shoal.frontier.sqlite.store.transaction import Transaction
from shoal.frontier.sqlite.store.writer_cache import SitePolicy

STRETCH = 200
"""How many contested sites one sweep looks at."""

CROWD = 1000
"""How many tasks of a site are looked through for their runs. Where there are more, its rules stay as they are."""

_policy = msgspec.json.Decoder(Policy)


def relax_sites(tx: Transaction) -> bool:
    """Give contested sites the strictest rules of the runs that go on (or are paused) and have work there.

    A request under way counts with the rules of its run, however that has ended. Answers whether there may be more.
    """
    found = tx.rows("find_contested_sites", most=STRETCH)
    if not found:
        return False
    sites = {number: (key, SitePolicy(*rules)) for number, key, *rules in found}
    leases = tx.rows("find_leases_of_sites", sites=list(sites))
    holders = _holders(tx, list(sites), leases)
    relaxed: dict[int, tuple[object, ...]] = {}
    opened: set[int] = set()
    settled: set[int] = set()
    for number, held in holders.items():
        key, old = sites[number]
        new = reduce(SitePolicy.strictest, held) if held else old
        if len(held) < 2:
            settled.add(number)
        if new != old:
            relaxed[number] = (key, *msgspec.structs.astuple(new))
            tx.cache.sites[key] = number, new
        if old.is_exclusive and not new.is_exclusive:
            opened.add(number)
    if relaxed:
        tx.write_rows("open_sites", list(relaxed.values()))
        tx.run("visit_again", sites=list(relaxed), now=tx.now)
    settled -= _hold_alone(tx, leases, {number: rules.lease for number, (_, rules) in sites.items()}, opened)
    if settled:
        tx.run("forget_contested", sites=sorted(settled))
    is_full = len(found) == STRETCH
    if is_full:  # otherwise all were looked at, and a sweep that changes nothing writes nothing
        tx.run("note_contested", sites=list(sites), now=tx.now)
    return is_full and bool(relaxed)


def _hold_alone(
    tx: Transaction, leases: list[tuple[int, int, int]], lives: dict[int, Millis], opened: set[int]
) -> set[int]:
    """A lease that had its slot for itself may begin late, and make several requests: where others may join it from now
    on, they wait until it has ended. Answers the sites that have such.

    So its slot's clock is put as far ahead as a lease lives, and by each sweep again; its settlement puts it back.
    """
    rows = [
        [site, token, -1 if site in opened else tx.now + lives[site] // 2, tx.now + lives[site]]
        for site, _, token in leases
    ]
    return set(tx.numbers("hold_alone", leases=rows)) if rows else set()


def _holders(tx: Transaction, sites: list[int], leases: list[tuple[int, int, int]]) -> dict[int, set[SitePolicy]]:
    """The rules that count at each of these sites. Without those that have too many tasks to tell."""
    waiting: defaultdict[int, set[int]] = defaultdict(set)
    found = [(site, *tx.row("find_runs_aside", site=site, most=CROWD)) for site in sites]
    for site, line, run in tx.rows("find_visitors", sites=sites):
        if run is not None:
            waiting[site].add(run)
        else:
            found.append((site, *tx.row("find_runs_ready", site=site, line=line, most=CROWD)))
    for site, _, runs in found:
        waiting[site].update(msgspec.json.decode(runs))
    crowded = {site for site, many, _ in found if many == CROWD}
    numbers = {run for runs in waiting.values() for run in runs} | {run for _, run, _ in leases}
    known = {
        number: (has_ended, SitePolicy.of(_policy.decode(policy)))
        for number, has_ended, policy in tx.rows("read_policies", runs=sorted(numbers))
    }
    holders = {site: {known[run][1] for run in waiting[site] if not known[run][0]} for site in sites}
    for site, run, _ in leases:
        holders[site].add(known[run][1])
    return {site: held for site, held in holders.items() if site not in crowded}

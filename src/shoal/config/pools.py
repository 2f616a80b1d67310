"""Pools of exits, as the settings describe them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from shoal.core.exit_address import TOR, ExitAddress, TorOptions, parse_exit
from shoal.core.task import DEFAULT_POOL, DIRECT
from shoal.errors import BadSettings
from shoal.frontier.contract.exits import NewExit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from shoal.config.sections import PoolSettings
    from shoal.config.settings import Settings
    from shoal.core.clock import Moment
    from shoal.frontier.contract.exits import ExitRecord


def pools_from(settings: Settings) -> dict[str, NewExit]:
    """Every exit of the settings by its name, with all pools that have it. Raises BadSettings for a line of a file.

    Without pools of these names, `default` is to leave directly, and `tor` by a worker's own Tor daemon.
    """
    exits: dict[str, NewExit] = {}
    if DEFAULT_POOL not in settings.exits:
        exits[DIRECT] = NewExit(DIRECT, DIRECT, (DEFAULT_POOL,))
    if TOR not in settings.exits:
        exits[TOR] = NewExit(TOR, TOR, (TOR,))
    for pool, described in settings.exits.items():
        number = 0
        for number, (text, address) in enumerate(_addresses(described), start=1):  # noqa: B007 - counted for below
            known = exits.get(address.name)
            pools = (*known.pools, pool) if known and pool not in known.pools else known.pools if known else (pool,)
            cap = min(filter(None, (described.cap, known.cap if known else 0)), default=0)
            exits[address.name] = NewExit(address.name, text, pools, cap)
        if not number:
            raise BadSettings(f"exits.{pool}: this pool has no exits. Give it `ways` or a `file` that names some.")
    return exits


def tor_from(settings: Settings) -> TorOptions:
    """How the Tor daemons of workers are run."""
    return TorOptions(**settings.tor.model_dump())


def speaks_of_tor(settings: Settings) -> bool:
    """Whether the settings show that somebody wants to leave by Tor."""
    named = any(parse_exit(way).scheme == TOR for pool in settings.exits.values() for way in pool.ways)
    wanted = {*(each.exits for each in settings.scrapers.values()), *(each.exits for each in settings.route)}
    return named or "tor" in settings.model_fields_set or TOR in wanted


def exits_in(
    pool: str, own: Mapping[str, NewExit], known: Sequence[ExitRecord], now: Moment, *, all_of_them: bool = False
) -> list[str]:
    """Names of the exits of a pool that can be used: those of the settings, and those that were put into the store.

    `all_of_them`: also those that are quarantined. Tor is in no list: each worker has its own.
    """
    resting = {record.name for record in known if record.quarantined_until > now and not all_of_them}
    names = [name for name, exit_ in own.items() if pool in exit_.pools and name != TOR]
    names += [record.name for record in known if pool in record.pools]
    return [name for name in dict.fromkeys(names) if name not in resting]


def _addresses(pool: PoolSettings) -> Iterator[tuple[str, ExitAddress]]:
    for way in pool.ways:
        yield way, parse_exit(way)
    if pool.file is None:
        return
    path = Path(pool.file)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise BadSettings(f"The file of exits {str(path)!r} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise BadSettings(f"The file of exits {str(path)!r} is not UTF-8 text.") from None
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text and not text.startswith("#"):
            try:
                yield text, parse_exit(text)
            except BadSettings as error:
                raise BadSettings(f"{path}, line {number}: {error}") from None

"""Versions of a store: which one this Shoal reads, and what is done and said about others. The same on every engine.

A store that is not there is made when it is opened. One of an older version is migrated only when that was asked for
(`shoal doctor --migrate`): its older workers may still be at work. One of a newer version is never touched.

Whoever changes how an engine stores things raises its SCHEMA_VERSION by one and writes the step from the version
before, `migrate_N`. The steps to a new version and its number are written in one transaction, under a lock.
"""

from __future__ import annotations

from collections.abc import Container

from shoal.errors import EngineBroken


def steps(where: str, found: int, wanted: int, known: Container[str], *, migrate: bool) -> list[str]:
    """The steps from the version that was found to the one that is wanted, none if they are the same.

    `known`: the steps that there are. Raises EngineBroken if the store is newer, older than any step leads from, or
    older and `migrate` was not asked for. `where` names the store, as the subject of a sentence.
    """
    if found > wanted:
        raise EngineBroken(
            f"{where} was written by a newer Shoal (schema {found}, this one knows {wanted}). "
            "Use that version, or another store."
        )
    needed = [f"migrate_{version}" for version in range(found + 1, wanted + 1)]
    if not all(step in known for step in needed):
        raise EngineBroken(
            f"{where} was written by a Shoal too old to be migrated from (schema {found}, this one needs {wanted}). "
            "Use that version, or another store."
        )
    if needed and not migrate:
        raise EngineBroken(
            f"{where} was written by an older Shoal (schema {found}, this one needs {wanted}). "
            "Stop the workers of the older version, then run `shoal doctor --migrate` with this engine."
        )
    return needed

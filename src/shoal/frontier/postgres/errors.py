"""What PostgreSQL and the way to it can raise, as Shoal's own errors: one sentence each, all in this place."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg  # type: ignore[import-untyped]

from shoal.errors import EngineBroken, EngineError, EngineFull, EngineRefused, EngineUnavailable, ShoalError
from shoal.frontier.postgres.store.address import PostgresAddress
from shoal.frontier.shared.refusals import unstorable

AGAIN = frozenset({"40001", "40P01", "55P03"})
"""The transaction lost against another one and left no trace: it can simply be repeated."""

FORGOTTEN = frozenset({"26000", "42P05"})
"""A prepared statement is missing or there already: a pooler that does not know about them stands in between."""

ENDING = ("08", "57P")
"""With such an error, the server closes the connection."""

UNSTORABLE = ("22", "23", "54")
"""Of a value that cannot be: no such text, out of range, against a rule of its table, too long for an index."""

NO_RUN = "SH404"
RUN_CANCELLED = "SH410"
RUN_LEAVING = "SH423"
RUN_ARRIVING = "SH425"
NOT_ARRIVING = "SH409"
STAYS = "SH403"

_SENTENCES: dict[str, tuple[type[EngineError], str]] = {
    "28P01": (
        EngineRefused,
        "PostgreSQL at {host} refused the password of user {user!r}. Check user and password in the engine URL.",
    ),
    "28000": (
        EngineRefused,
        "PostgreSQL at {host} does not let user {user!r} into database {database!r}. "
        "Check the engine URL and pg_hba.conf.",
    ),
    "3D000": (
        EngineRefused,
        "There is no database {database!r} on {host}. "
        "Create it (createdb {database}), or name another in the engine URL.",
    ),
    "42501": (
        EngineRefused,
        "User {user!r} lacks a right in database {database!r} on {host} ({detail}). "
        'Grant it: GRANT CREATE ON DATABASE "{database}" TO "{user}", '
        "or create schema {schema} and make {user} its owner.",
    ),
    "53100": (
        EngineFull,
        "The disk of PostgreSQL at {host} is full. "
        "Free some space and go on with --resume: what was acknowledged is safe.",
    ),
    "53200": (EngineUnavailable, "PostgreSQL at {host} is out of memory ({detail})."),
    "53300": (
        EngineUnavailable,
        "PostgreSQL at {host} takes no more connections. Raise max_connections, use a pooler, "
        "or lower ?connections= in the engine URL.",
    ),
    "25006": (
        EngineUnavailable,
        "PostgreSQL at {host} only lets read: it is a standby, or set to read-only. "
        "Name the primary in the engine URL.",
    ),
    "57P01": (EngineUnavailable, "PostgreSQL at {host} is shutting down. It can be used again when it is back."),
    "57P02": (EngineUnavailable, "PostgreSQL at {host} has crashed and is being restarted. Try again in a moment."),
    "57P03": (EngineUnavailable, "PostgreSQL at {host} is starting up. Try again in a moment."),
    "57014": (
        EngineUnavailable,
        "PostgreSQL at {host} gave up a statement: it took longer than statement_timeout allows.",
    ),
    "40001": (EngineUnavailable, "PostgreSQL at {host} could not fit a transaction in between others, time and again."),
    "40P01": (
        EngineUnavailable,
        "PostgreSQL at {host} met deadlocks time and again. Are other programs locking its tables?",
    ),
    "55P03": (
        EngineUnavailable,
        "A lock in PostgreSQL at {host} could not be had. Are other programs locking its tables?",
    ),
    "XX001": (
        EngineBroken,
        "PostgreSQL at {host} says that data of schema {schema} is damaged. Restore it from a backup.",
    ),
    "XX002": (
        EngineBroken,
        "PostgreSQL at {host} says that an index of schema {schema} is damaged. Run REINDEX on it.",
    ),
    "3F000": (EngineBroken, "Schema {schema} of database {database!r} on {host} has gone. Open the engine again."),
    "42P01": (EngineBroken, "A table of schema {schema} of database {database!r} on {host} has gone ({detail})."),
    "42883": (EngineBroken, "A function of schema {schema} of database {database!r} on {host} has gone ({detail})."),
}


@contextmanager
def clear_errors(address: PostgresAddress) -> Iterator[None]:
    """Translate what the driver raises. What is not known here goes on as it is."""
    try:
        yield
    except ShoalError:
        raise
    except asyncpg.PostgresError as error:
        raise _of_server(error, address) from error
    except (TimeoutError, OSError, asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
        raise _of_way(error, address) from error


def is_of_value(error: Exception) -> bool:
    """Whether the driver could not even send a value; nothing has been sent then."""
    return isinstance(error, asyncpg.InterfaceError) and isinstance(error, ValueError)


def _of_server(error: asyncpg.PostgresError, address: PostgresAddress) -> Exception:
    state = error.sqlstate or ""
    found = _SENTENCES.get(state)
    if found is None and state.startswith("08"):
        return _lost(address)
    if found is None and state.startswith(UNSTORABLE):
        return unstorable(f"PostgreSQL at {address.host}", error)
    if found is None:
        unknown: Exception = error
        return unknown
    kind, sentence = found
    return kind(_filled(sentence, address, str(error)))


def _of_way(error: Exception, address: PostgresAddress) -> Exception:
    if isinstance(error, ssl.SSLCertVerificationError) or "rejected SSL upgrade" in str(error):
        return EngineRefused(f"No safe connection to PostgreSQL at {address.host}: {error}. Check sslmode in the URL.")
    if isinstance(error, asyncpg.InternalClientError | asyncio.TimeoutError):
        return _lost(address)
    if is_of_value(error):
        return unstorable(f"PostgreSQL at {address.host}", error)
    if isinstance(error, asyncpg.InterfaceError):
        return _lost(address) if "clos" in str(error) or "connection" in str(error) else error
    if isinstance(error, ConnectionRefusedError | FileNotFoundError):
        sentence = "Nothing answers at {host}. Check that PostgreSQL runs there and that host and port are right."
    elif _is_unknown_host(error):
        sentence = "There is no host {host}, as far as the name service knows. Check the engine URL."
    else:
        return _lost(address)
    return EngineUnavailable(_filled(sentence, address, str(error)))


def _is_unknown_host(error: Exception) -> bool:
    return type(error).__name__ == "gaierror"


def _lost(address: PostgresAddress) -> EngineUnavailable:
    return EngineUnavailable(f"The connection to PostgreSQL at {address.host} was lost. The next call tries again.")


def _filled(sentence: str, address: PostgresAddress, detail: str) -> str:
    return sentence.format(
        host=address.host, database=address.database, user=address.user, schema=address.schema, detail=detail
    )

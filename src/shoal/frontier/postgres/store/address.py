"""What an engine URL says: how to reach the server, and which schema holds the store."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from shoal.errors import BadSettings

EXAMPLE = "postgresql://user:password@host:5432/database"
DEFAULT_SCHEMA = "shoal"
DEFAULT_CONNECTIONS = 8


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """`dsn`: for the driver. `shown`: without the password. `connections`: most at once, of this process."""

    dsn: str
    shown: str
    host: str
    database: str
    user: str
    schema: str
    connections: int


def read_address(url: str) -> PostgresAddress:
    """Read an engine URL. `?schema=…` and `?connections=…` are Shoal's own; the rest is the driver's (`sslmode`…)."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadSettings(f"The engine URL cannot be read: {error}. Write it like {EXAMPLE}.") from None
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    schema = options.pop("schema", DEFAULT_SCHEMA)
    if not schema or len(schema.encode()) > 63 or "\x00" in schema or schema.startswith("pg_"):
        raise BadSettings(
            f"{schema!r} cannot be the name of a schema. Write it like {EXAMPLE}?schema={DEFAULT_SCHEMA}."
        )
    connections = options.pop("connections", str(DEFAULT_CONNECTIONS))
    if not connections.isdigit() or not 1 <= int(connections) <= 1000:
        raise BadSettings(f"connections={connections} in the engine URL must be a whole number from 1 to 1000.")
    dsn = urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(options, quote_via=quote), ""))
    host = parts.hostname or options.get("host", "localhost")
    shown = f"{host}:{port}" if port else host
    database = unquote(parts.path.lstrip("/")) or options.get("dbname", options.get("database", ""))
    user = unquote(parts.username or options.get("user", ""))
    return PostgresAddress(dsn, f"{shown}/{database}", shown, database, user, schema, int(connections))


def quoted(name: str) -> str:
    """A name as SQL wants it."""
    return '"' + name.replace('"', '""') + '"'

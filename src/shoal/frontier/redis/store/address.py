"""What an engine URL says: where the servers are, how they are arranged, and which store in them is meant."""

from __future__ import annotations

import re
from enum import StrEnum
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from shoal.errors import BadSettings

SCHEMES = ("redis", "rediss", "redis+sentinel", "redis+cluster", "rediss+cluster")
EXAMPLES = {
    "redis": "redis://host:6379/0",
    "rediss": "rediss://host:6379/0",
    "redis+sentinel": "redis+sentinel://host:26379,host2:26379/master-name/0",
    "redis+cluster": "redis+cluster://host:7000,host2:7000",
    "rediss+cluster": "rediss+cluster://host:7000,host2:7000",
}
PREFIX = re.compile(r"[A-Za-z0-9_.-]{1,40}")
CLUSTER_PARTITIONS = 16
MOST_PARTITIONS = 1024


class Shape(StrEnum):
    """How the servers are arranged."""

    SINGLE = "single"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


class RedisAddress(msgspec.Struct, frozen=True):
    """A store. `partitions`: None = not said; the store knows, or takes what suits its shape when it is made."""

    shape: Shape
    hosts: tuple[tuple[str, int], ...]
    tls: bool = False
    db: int = 0
    username: str | None = None
    password: str | None = None
    master: str = ""
    prefix: str = "shoal"
    partitions: int | None = None
    tls_ca: str | None = None

    @property
    def shown(self) -> str:
        """Where it is, without secrets."""
        return ", ".join(f"{host}:{port}" for host, port in self.hosts)

    @property
    def usual_partitions(self) -> int:
        """How many partitions a new store gets if nobody says."""
        return CLUSTER_PARTITIONS if self.shape is Shape.CLUSTER else 1


def read_address(url: str) -> RedisAddress:
    """Take an engine URL apart. Raises BadSettings with one sentence."""
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise BadSettings(f"{parts.scheme}:// is not a Redis URL. Write it like {EXAMPLES['redis']}.")
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    shape = _shape(parts.scheme, options)
    credentials, _, hosts = parts.netloc.rpartition("@")
    username, _, password = credentials.partition(":")
    path = [unquote(part) for part in parts.path.split("/") if part]
    master = ""
    if shape is Shape.SENTINEL:
        if not path:
            raise _wrong(parts.scheme, "names no master")
        master = path.pop(0)
    db = _number(parts.scheme, "the database", path[0]) if path else 0
    if shape is Shape.CLUSTER and db:
        raise _wrong(parts.scheme, "names a database, but a Redis Cluster has only database 0")
    prefix = options.pop("prefix", "shoal")
    if not PREFIX.fullmatch(prefix):
        raise _wrong(parts.scheme, f"has the prefix {prefix!r}; use up to 40 letters, digits, dots and dashes")
    partitions = options.pop("partitions", None)
    tls_ca = options.pop("tls_ca", None)
    if options:
        raise _wrong(
            parts.scheme, f"has an unknown option {min(options)!r} (known: cluster, partitions, prefix, tls_ca)"
        )
    return RedisAddress(
        shape=shape,
        hosts=_hosts(parts.scheme, hosts, 26379 if shape is Shape.SENTINEL else 6379),
        tls=parts.scheme.startswith("rediss"),
        db=db,
        username=unquote(username) or None,
        password=unquote(password) or None,
        master=master,
        prefix=prefix,
        partitions=None if partitions is None else _partitions(parts.scheme, partitions),
        tls_ca=tls_ca,
    )


def _shape(scheme: str, options: dict[str, str]) -> Shape:
    cluster = options.pop("cluster", "0")
    if scheme.endswith("+cluster") or cluster not in ("0", "false", "no"):
        return Shape.CLUSTER
    return Shape.SENTINEL if scheme.endswith("+sentinel") else Shape.SINGLE


def _hosts(scheme: str, text: str, usual_port: int) -> tuple[tuple[str, int], ...]:
    hosts = []
    for part in text.split(",") if text else ["localhost"]:
        match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::(\d+))?", part.strip())
        if match is None:
            raise _wrong(scheme, f"has {part!r} where a host and port should be")
        port = int(match[2]) if match[2] else usual_port
        if not 0 < port < 65536:
            raise _wrong(scheme, f"has the port {port}, which cannot be")
        hosts.append((match[1].strip("[]"), port))
    return tuple(hosts)


def _number(scheme: str, what: str, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise _wrong(scheme, f"has {text!r} for {what}, which is not a number")
    return int(text)


def _partitions(scheme: str, text: str) -> int:
    number = _number(scheme, "the partitions", text)
    if not 1 <= number <= MOST_PARTITIONS:
        raise _wrong(scheme, f"asks for {number} partitions; between 1 and {MOST_PARTITIONS} are possible")
    return number


def _wrong(scheme: str, what: str) -> BadSettings:
    return BadSettings(f"The engine URL {what}. Write it like {EXAMPLES[scheme]}.")

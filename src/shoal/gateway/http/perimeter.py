"""The perimeter: what a request passes before any route sees it. One place, around everything, in this order:

1. without API keys, whether it comes from a page of somebody else (`visitors`);
2. which path it means, exactly: no other spelling leads to a route;
3. whose it is: nothing but health and files is for those without a good key, where there are keys;
4. its body, bounded in bytes and time (`Gateway` reads it, for the routes that take one; for others nobody waits).
"""

from __future__ import annotations

import re
from collections.abc import Set
from enum import Enum, auto
from typing import NamedTuple

from shoal.core.secret import Secret
from shoal.gateway.http.answer import Problem
from shoal.gateway.http.asgi import Scope, header
from shoal.gateway.http.visitors import Visitors
from shoal.gateway.limits.keyring import KeyRing
from shoal.gateway.limits.keys import ANYBODY, ApiKey

_EXACT = re.compile(rb"(?:/[A-Za-z0-9_.~-]+)+/?")
"""The paths of routes, as they are written: nothing in them needs to be encoded, and nothing that is encoded is one."""

OPEN = frozenset({"/health", "/health/live"})
"""For everybody, since they tell nothing about anybody."""

FILES_OF_OURS = "static"


class Place(Enum):
    """Where a path leads."""

    ROUTE = auto()
    OUR_FILES = auto()
    FILES = auto()
    """The operator's folder."""


class Entry(NamedTuple):
    """A request that has passed. `path`: without the slash at its end, which means nothing."""

    place: Place
    path: str
    method: str
    key: ApiKey


class Perimeter:
    """`own`: first steps of paths that are routes. `files`: whether all other paths are files of the operator's."""

    def __init__(self, keys: KeyRing, visitors: Visitors, own: Set[str], *, files: bool) -> None:
        self._keys = keys
        self._visitors = visitors
        self._own = own
        self._files = files

    async def enter(self, scope: Scope) -> Entry:
        """What the request is for, and whose. Raises Problem 401, 403, 404 and 421."""
        if not self._keys.are_needed:
            self._visitors.check(scope["headers"])
        place, path = self._find(scope)
        method: str = scope["method"]
        if method == "HEAD" and not path.endswith("/events"):
            method = "GET"  # the server leaves the body out; not of a stream of events, which would be awaited
        if place is Place.ROUTE:
            key = ANYBODY if path in OPEN else await self.whose(scope)
        elif place is None:
            await self.whose(scope)
            raise Problem(404, "not-found", "There is nothing here.")
        else:
            key = ANYBODY
        return Entry(place, path, method, key)

    def _find(self, scope: Scope) -> tuple[Place | None, str]:
        path: str = scope["path"]
        first = path[1:].partition("/")[0]
        if first not in self._own:
            return (Place.FILES if self._files else None), path
        if first == FILES_OF_OURS:
            return Place.OUR_FILES, path
        if not _EXACT.fullmatch(scope.get("raw_path") or path.encode()):
            return None, path
        return Place.ROUTE, path.removesuffix("/")

    async def whose(self, scope: Scope) -> ApiKey:
        """Whose request this is. Raises Problem 401."""
        given = header(scope, b"authorization")
        if given is None:
            plain = header(scope, b"x-api-key")
            return await self._keys.who(None if plain is None else Secret(plain))
        scheme, _, secret = given.partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise Problem(
                401, "no-api-key", "Send the API key as `Authorization: Bearer KEY`.",
                headers=((b"www-authenticate", b"Bearer"),),
            )  # fmt: skip
        return await self._keys.who(Secret(secret.strip()))

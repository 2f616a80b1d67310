"""The perimeter: what a request passes before any route sees it. One place, around everything, in this order:

1. without API keys, whether it comes from a page of somebody else (`visitors`);
2. which path it means, exactly: no other spelling leads to a route. Nothing in their paths needs to be encoded, so
   nothing that is encoded is one of them;
3. whose it is: nothing but health and files is for those without a good key, where there are keys;
4. its body, bounded in bytes and time (`Gateway` reads it, for the routes that take one; for others nobody waits).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum, auto

import msgspec

from shoal.core.secret import Secret
from shoal.gateway.http.answer import Problem
from shoal.gateway.http.asgi import Scope
from shoal.gateway.limits.keyring import KeyRing
from shoal.gateway.limits.keys import ANYBODY, ApiKey
from shoal.gateway.perimeter.visitors import Visitors

_KNOWN = frozenset({b"host", b"origin", b"authorization", b"x-api-key"})

OPEN = frozenset({"/health", "/health/live"})
"""For everybody, since they tell nothing about anybody."""

FILES_OF_OURS = "static"


class Destination(Enum):
    """Where a path leads."""

    ROUTE = auto()
    OUR_FILES = auto()
    FILES = auto()
    """The operator's folder."""


ROUTE = Destination.ROUTE
"""By a name of its own: asking an enumeration for a member takes longer than all the rest."""


class AdmittedRequest(msgspec.Struct, frozen=True, gc=False):
    """A request that has passed. `path`: without the slash at its end, which means nothing."""

    destination: Destination
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

    async def enter(self, scope: Scope) -> AdmittedRequest:
        """What the request is for, and whose. Raises Problem 401, 403, 404 and 421."""
        known = _known_headers(scope)
        if not self._keys.are_needed:
            self._visitors.check(known.get(b"host", b""), known.get(b"origin"))
        destination, path = self._find(scope)
        method: str = scope["method"]
        if method == "HEAD" and not path.endswith("/events"):
            method = "GET"  # the server leaves the body out; not of a stream of events, which would be awaited
        if destination is ROUTE:
            key = ANYBODY if path in OPEN else await self._whose(known)
        elif destination is None:
            await self._whose(known)
            raise Problem(404, "not-found", "There is nothing here.")
        else:
            key = ANYBODY
        return AdmittedRequest(destination, path, method, key)

    def _find(self, scope: Scope) -> tuple[Destination | None, str]:
        path: str = scope["path"]
        first = path[1:].partition("/")[0]
        if first not in self._own:
            return (Destination.FILES if self._files else None), path
        if first == FILES_OF_OURS:
            return Destination.OUR_FILES, path
        path = path.removesuffix("/")
        if b"%" in scope["raw_path"] or path.endswith("/"):  # what else may be odd about it, no route is called
            return None, path
        return ROUTE, path

    async def _whose(self, known: Mapping[bytes, bytes]) -> ApiKey:
        """Whose request this is. Raises Problem 401."""
        given = known.get(b"authorization")
        if given is None:
            plain = known.get(b"x-api-key")
            return await self._keys.who(None if plain is None else Secret(str(plain, "latin-1")))
        scheme, _, secret = str(given, "latin-1").partition(" ")
        if scheme.lower() != "bearer" or not secret.strip():
            raise Problem(
                401, "no-api-key", "Send the API key as `Authorization: Bearer KEY`.",
                headers=((b"www-authenticate", b"Bearer"),),
            )  # fmt: skip
        return await self._keys.who(Secret(secret.strip()))


def _known_headers(scope: Scope) -> Mapping[bytes, bytes]:
    """The headers that are asked for here, the first of each name."""
    return {name: value for name, value in reversed(scope["headers"]) if name in _KNOWN}

"""How long an engine waits for its store before it calls it away."""

from __future__ import annotations

from typing import NamedTuple


class StoreTimeouts(NamedTuple):
    """In seconds. `connect`: until a server takes a connection. `call`: until a call is answered, or a lock is free."""

    connect: float
    call: float

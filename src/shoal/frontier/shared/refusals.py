"""A value that a store refuses, told apart from a store that is away: one sentence for all engines."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shoal.core.storable import cleaned
from shoal.errors import Unstorable

UNENCODABLE = (UnicodeError, OverflowError, RecursionError)
"""What encoders say of values that cannot be sent to any store."""


def unstorable(store: str, error: Exception) -> Unstorable:
    """The error that says so. `store`: which one, as the beginning of the sentence."""
    return Unstorable(f"{store} does not hold such a value: {cleaned(error, 300).rstrip('.')}.")


@contextmanager
def storable_only(store: str) -> Iterator[None]:
    """Within the block, what cannot be encoded is Unstorable."""
    try:
        yield
    except UNENCODABLE as error:
        raise unstorable(store, error) from error

"""Secrets as types that do not print: whatever shows them, in a log, a traceback or a debugger, shows a mask."""

from __future__ import annotations

from hmac import compare_digest
from typing import NoReturn

MASK = "***"


class Secret:
    """A text that nobody is to see. `reveal` is the only way to it, so that a search finds who takes it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself."""
        return self._text

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __format__(self, _: str) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        """Compared in a time that does not tell how much of it is alike."""
        return isinstance(other, Secret) and compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A secret is not stored as it is.")


class SecretBytes(bytes):
    """The same for what must be bytes: the value of a header. It is what it is, but for how it prints."""

    def __repr__(self) -> str:
        return f"b'{MASK}'"

    __str__ = __repr__

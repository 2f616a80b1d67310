"""Secrets at rest: a text is sealed with a key that is not in the store, and opened where it is used (AES-SIV).

    sealed:1:9f86d081:BASE64      version, which key it was, and what only that key opens

The same text sealed twice with one key for one purpose is the same again, so that what is sealed can be compared. What
it was sealed for is part of it: a password of a proxy does not open as a header.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256, sha512
from typing import TYPE_CHECKING

from shoal.errors import CannotUnseal

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESSIV

PREFIX = "sealed:1:"
_SECRET_HEADER = re.compile(r"authorization|cookie|token|secret|password|api[-_]?key|auth\b|session", re.IGNORECASE)


def is_sealed(text: str) -> bool:
    """Whether a text is what `SecretBox.seal` gives."""
    return text.startswith(PREFIX)


@lru_cache(1024)
def is_secret_header(name: str) -> bool:
    """Whether what a header of this name says is nobody else's business."""
    return _SECRET_HEADER.search(name) is not None


class SecretBox:
    """Seals with the first of its keys, opens with any: `keys` finds them when there is first something to do."""

    def __init__(self, keys: Callable[[], Sequence[str]]) -> None:
        self._find = keys
        self._ciphers: dict[str, AESSIV] = {}

    def seal(self, text: str, purpose: str) -> str:
        """The text for the store. One that is sealed already stays as it is. Raises BadSettings if there is no key."""
        if is_sealed(text):
            return text
        name, cipher = next(iter(self._known().items()))
        sealed = cipher.encrypt(text.encode(), [purpose.encode()])
        return f"{PREFIX}{name}:{urlsafe_b64encode(sealed).decode()}"

    def open(self, text: str, purpose: str) -> str:
        """What was sealed; a text that is not sealed is itself. Raises CannotUnseal, and BadSettings as `seal` does."""
        if not is_sealed(text):
            return text
        name, _, body = text.removeprefix(PREFIX).partition(":")
        cipher = self._known().get(name)
        if cipher is None:
            raise CannotUnseal(name)
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - loaded where there is something to open

        try:
            return cipher.decrypt(urlsafe_b64decode(body), [purpose.encode()]).decode()
        except (InvalidTag, ValueError):
            raise CannotUnseal(name, damaged=True) from None

    def reseal(self, text: str, purpose: str) -> str:
        """The same, sealed with the first key, whichever it was sealed with before."""
        return self.seal(self.open(text, purpose), purpose)

    def seal_headers(self, headers: dict[str, str]) -> dict[str, str]:
        """The headers with those sealed that are secret; the same object if none is, or all are already."""
        plain = [name for name, value in headers.items() if is_secret_header(name) and not is_sealed(value)]
        return headers | {name: self.seal(headers[name], _of_header(name)) for name in plain} if plain else headers

    def open_headers(self, headers: dict[str, str]) -> dict[str, str]:
        """The headers as they are sent; the same object if none is sealed."""
        if not any(map(is_sealed, headers.values())):
            return headers
        return {name: self.open(value, _of_header(name)) for name, value in headers.items()}

    def _known(self) -> Mapping[str, AESSIV]:
        if not self._ciphers:
            from cryptography.hazmat.primitives.ciphers.aead import AESSIV  # noqa: PLC0415 - 30 ms, for those who need it

            for text in self._find():
                key = sha512(b"shoal secret key\0" + text.encode()).digest()
                self._ciphers[sha256(key).hexdigest()[:8]] = AESSIV(key)
        return self._ciphers


class NoKeys(SecretBox):
    """Of those who were given none: nothing is sealed, and what is cannot be opened."""

    def __init__(self) -> None:
        super().__init__(tuple)

    def seal(self, text: str, purpose: str) -> str:
        return text


def _of_header(name: str) -> str:
    return f"header {name.lower()}"

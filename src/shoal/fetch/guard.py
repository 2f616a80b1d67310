"""Where addresses that a stranger chose are kept away from what is not meant for them."""

from __future__ import annotations

from typing import Protocol


class Guard(Protocol):
    """Asked about every URL that a web client brings, and about every address that is connected to on its behalf."""

    def refuses_url(self, url: str) -> str | None:
        """A short phrase if this normalised URL is not to be fetched; None = as far as it tells, it may be."""
        ...

    def refuses_address(self, address: str) -> str | None:
        """A short phrase if this IP address is not to be connected to; None = it may be."""
        ...

"""What this machine's own network has, as its kernel knows it: routes and addresses. No packet is sent to find out."""

from __future__ import annotations

import socket

_NOBODY = ((socket.AF_INET, "198.51.100.1"), (socket.AF_INET6, "2001:db8::1"))
"""Addresses kept free for documentation: only a default route leads there."""


def has_default_route() -> bool:
    """Whether there is a way out at all, by IPv4 or IPv6."""
    for family, address in _NOBODY:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((address, 9))
        except OSError:
            continue
        return True
    return False


def has_address(address: str) -> bool:
    """Whether connections can come from this IP address."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True

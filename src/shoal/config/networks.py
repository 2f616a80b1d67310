"""Networks as people write them in settings."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network


def network_from(text: str) -> IPv4Network | IPv6Network:
    """`10.0.0.0/8` as a network. Raises ValueError with what is wrong, and with the network that was probably meant."""
    try:
        return ip_network(text)
    except ValueError:
        pass
    try:
        near = str(ip_network(text, strict=False))
    except ValueError:
        raise ValueError(f'{text!r} is no network; one is written as "10.0.0.0/8" or "fd00::/8"') from None
    raise ValueError(f"{text!r} is an address in a network; write {near!r} for all of it")

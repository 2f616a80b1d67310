"""The SSRF guard: what a web client asks for is fetched from the public internet, and from nowhere else.

Asked twice: about a URL when a client brings it, as far as its spelling tells; and about every address at the moment
before it is connected to, whatever name led there. Only the second is proof: a name may mean another address each time.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from shoal.core.url import host_of

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

NOT_PUBLIC = "its host is unknown, or at an address that is not public"
"""All that a client is told of a name that leads inside: neither the address nor what kind it is, nor even that there
is such a name. One that leads nowhere is told the same, and treated the same."""

_KINDS = {
    "the unspecified address": ("0.0.0.0/32", "::/128"),
    "an address of this network": ("0.0.0.0/8",),
    "a loopback address": ("127.0.0.0/8", "::1/128"),
    "a metadata address of a cloud": ("169.254.169.254/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),
    "a link-local address": ("169.254.0.0/16", "fe80::/10"),
    "a private address": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    "an address of a carrier's own network": ("100.64.0.0/10",),
    "a multicast address": ("224.0.0.0/4", "ff00::/8"),
    "the broadcast address": ("255.255.255.255/32",),
    "an address for documentation": (
        "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20",
    ),
    "an address for benchmarks": ("198.18.0.0/15", "2001:2::/48"),
    "an address of a tunnel": (
        "192.88.99.0/24", "2001::/32", "2002::/16", "64:ff9b:1::/48", "::/96", "::ffff:0:0:0/96",
    ),
    "a reserved address": ("192.0.0.0/24", "240.0.0.0/4", "2001::/23"),
}  # fmt: skip
_REFUSED = [(ip_network(network), kind) for kind, networks in _KINDS.items() for network in networks]
_IN_USE = ip_network("2000::/3")
"""All of IPv6 that is given out to the public. The rest is refused without being named."""

_CARRIES_IPV4 = ip_network("64:ff9b::/96")
"""How a network without IPv4 of its own writes the IPv4 address of a server: what counts is that one."""


class Guard:
    """Lets pass what is public, and the networks that the operator allows."""

    def __init__(self, allow: Iterable[Network] = ()) -> None:
        self._allowed = tuple(allow)

    def refuses_url(self, url: str) -> str | None:
        """A short phrase if the host of this normalised URL is not to be connected to; None = as far as it tells."""
        host = host_of(url).rstrip(".")
        if host == "localhost" or host.endswith(".localhost"):
            return None if self.refuses_address("127.0.0.1") is None else f"{host} is this machine itself"
        try:
            address = ip_address(host.strip("[]"))
        except ValueError:
            return None
        kind = self.refuses_address(str(address))
        return None if kind is None else f"{address} is {kind}"

    def refuses_address(self, address: str) -> str | None:
        """What kind of address this is, if it is not to be connected to; None = it may be."""
        meant = _meant(ip_address(address.partition("%")[0]))
        if any(meant in network for network in self._allowed):
            return None
        for network, kind in _REFUSED:
            if meant in network:
                return kind
        return "a reserved address" if meant.version == 6 and meant not in _IN_USE else None


def _meant(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, where it is one in disguise."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in _CARRIES_IPV4 else address

"""Decides which IP addresses may be connected to: public ones, and what the operator lists. All doubt refuses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

_Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network

# IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890): every block that is not globally reachable,
# with multicast and what is reserved. 169.254.169.254 and fd00:ec2::254 (cloud metadata) lie within.
_REFUSED_4: tuple[IPv4Network, ...] = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # "this network"; 0.0.0.0 reaches loopback on Linux
            "10.0.0.0/8",  # private, RFC 1918
            "100.64.0.0/10",  # carrier-grade NAT, RFC 6598; 100.100.100.200 is a cloud's metadata
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local, RFC 3927
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relay, deprecated
            "192.168.0.0/16",  # private
            "198.18.0.0/15",  # benchmarking
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "168.63.129.16/32",  # a cloud's host agent behind a public number
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, with broadcast
        ),
    )
)
# Of IPv6 only 2000::/3 is given out for the public internet; these blocks of it are not ordinary either.
_GLOBAL_6 = IPv6Network("2000::/3")
_REFUSED_6: tuple[IPv6Network, ...] = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, with Teredo, which hides an IPv4 address
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4: hides an IPv4 address
            "3fff::/20",  # documentation, RFC 9637
        ),
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052: the last 32 bits are an IPv4 address
# Judged addresses kept at hand; 100 bytes each.
_KEPT = 65_536


class AddressRules:
    """Which addresses may be connected to; ``allow`` lists CIDR blocks that are allowed although not public."""

    def __init__(self, allow: Sequence[str] = ()) -> None:
        self._allow: tuple[_Network, ...] = tuple(ip_network(block.strip(), strict=False) for block in allow)
        self._judged = lru_cache(maxsize=_KEPT)(self._judge)

    def refuses(self, ip: str) -> bool:
        """Whether ``ip`` must not be connected to; what is no IP address is refused."""
        return self._judged(ip)

    def _judge(self, ip: str) -> bool:
        try:
            address = ip_address(ip.strip("[]"))
        except ValueError:
            return True
        return not self._allowed(address)

    def _allowed(self, address: _Address) -> bool:
        if isinstance(address, IPv6Address):
            hidden = address.ipv4_mapped
            if hidden is not None:
                return self._listed(hidden)  # never a public answer of DNS, so only by the operator's word
            if address in _NAT64:
                return self._listed(address) and self._allowed(IPv4Address(int(address) & 0xFFFFFFFF))
            return self._listed(address) or (
                address in _GLOBAL_6 and not any(address in network for network in _REFUSED_6)
            )
        return self._listed(address) or not any(address in network for network in _REFUSED_4)

    def _listed(self, address: _Address) -> bool:
        return any(address in network for network in self._allow)


# Shown in examples (RFC 5737, RFC 3849, RFC 9637): not public, but an example must work as it stands.
_DOCUMENTATION = tuple(
    map(ip_network, ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"))
)
_REFUSED: tuple[_Network, ...] = (*_REFUSED_4, *_REFUSED_6)


def own_ranges(texts: Iterable[str]) -> list[_Network]:
    """The networks from which a crawler asks, of addresses and CIDR blocks, each once and in their order.

    Raises ValueError, which says what is wrong with the first that is no network, or not public.
    """
    found: dict[_Network, None] = {}
    for text in texts:
        try:
            network = ip_network(text.strip())
        except ValueError as error:
            raise ValueError(f"{text!r}, which is no network ({error})") from None
        if not any(_within(network, each) for each in _DOCUMENTATION):
            outside = isinstance(network, IPv6Network) and not network.subnet_of(_GLOBAL_6)
            if outside or any(network.overlaps(each) for each in _REFUSED):
                raise ValueError(f"{text!r}, which is not public")
        found[network] = None
    return list(found)


def _within(network: _Network, block: _Network) -> bool:
    return network.version == block.version and network.overlaps(block) and network.prefixlen >= block.prefixlen

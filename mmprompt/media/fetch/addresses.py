"""Which IP addresses are public. Host names are resolved first; only addresses are checked here.

The networks are listed here because ``ipaddress.is_global`` gives different answers in different releases of Python.
"""

from __future__ import annotations

import ipaddress
from typing import Union

IPAddress = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]

_PRIVATE = "a private address"
_LOOPBACK = "a loopback address"
_LINK_LOCAL = "a link-local address"
_MULTICAST = "a multicast address"
_RESERVED = "a reserved address"
_TRANSLATED = "an IPv6 address that stands for an IPv4 one"

_V4 = tuple(
    (ipaddress.IPv4Network(network), name)
    for network, name in (
        ("0.0.0.0/8", "an unspecified address"),
        ("10.0.0.0/8", _PRIVATE),
        ("100.64.0.0/10", "an address shared behind carriers"),  # RFC 6598; metadata of a cloud at 100.100.100.200
        ("127.0.0.0/8", _LOOPBACK),
        ("168.63.129.16/32", "a cloud's own address"),  # Azure's host, which is in no special range
        ("169.254.0.0/16", _LINK_LOCAL),
        ("172.16.0.0/12", _PRIVATE),
        ("192.0.0.0/24", _RESERVED),
        ("192.0.2.0/24", _RESERVED),
        ("192.88.99.0/24", _RESERVED),
        ("192.168.0.0/16", _PRIVATE),
        ("198.18.0.0/15", _RESERVED),
        ("198.51.100.0/24", _RESERVED),
        ("203.0.113.0/24", _RESERVED),
        ("224.0.0.0/4", _MULTICAST),
        ("240.0.0.0/4", _RESERVED),
    )
)
_V6 = tuple(
    (ipaddress.IPv6Network(network), name)
    for network, name in (
        ("::/128", "an unspecified address"),
        ("::1/128", _LOOPBACK),
        ("::/96", _TRANSLATED),
        ("64:ff9b::/96", _TRANSLATED),
        ("64:ff9b:1::/48", _TRANSLATED),
        ("2001::/32", _TRANSLATED),
        ("2001::/23", _RESERVED),
        ("2001:db8::/32", _RESERVED),
        ("2002::/16", _TRANSLATED),
        ("3fff::/20", _RESERVED),
        ("fc00::/7", _PRIVATE),
        ("fe80::/10", _LINK_LOCAL),
        ("ff00::/8", _MULTICAST),
    )
)
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
"""The addresses assigned for public use. The rest is reserved: what is assigned later stays refused."""


def address_fault(address: str) -> str:
    """Return what kind of address it is if it is not public, else an empty string.

    An IPv4 address mapped into IPv6 counts as the IPv4 address. Other IPv6 addresses that contain an IPv4 address
    (NAT64, 6to4, Teredo) are never public, and neither is an address with a scope.
    """
    ip = as_ip(address)
    if ip is None:
        return "an address with a scope" if "%" in address else "not an IP address"
    if isinstance(ip, ipaddress.IPv4Address):
        return next((name for network, name in _V4 if ip in network), "")
    fault = next((name for network, name in _V6 if ip in network), "")
    return fault or ("" if ip in _GLOBAL_UNICAST else _RESERVED)


def as_ip(address: str) -> IPAddress | None:
    """Return an IP address, mapped IPv4 as IPv4; None for a name, an address with a scope, or any other text."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return None
    if isinstance(ip, ipaddress.IPv6Address):
        # a scope names an interface of this machine; addresses that differ only in it would compare as different
        return None if ip.scope_id is not None else ip.ipv4_mapped or ip
    return ip

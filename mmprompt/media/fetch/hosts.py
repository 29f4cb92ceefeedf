"""The hosts that a policy allows, by name and by address, and those that did not answer a short while ago."""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Iterable

from mmprompt.errors import PolicyError, SourceError, shown
from mmprompt.media.fetch.addresses import address_fault, as_ip

LONGEST_URL = 1 << 16
"""Characters. Servers accept an eighth of it; parsers use a hundred bytes of memory for each."""

_PORTS = {"http": 80, "https": 443}
_LOOPBACKS = ("127.0.0.1", "::1")
_NOT_IN_HOST = re.compile(r"[\s\x00-\x20\x7f/\\@?#%*]")
_IN_ADDRESS = re.compile(r"[:\[\]]")


class AllowedHosts:
    """The hosts of ``MediaPolicy.allow_domains``; see there for the forms of an entry. Immutable.

    A name is allowed by its entry, an address if it is public. An address that is not public is allowed only by an
    entry with that very address and its port: others decide where a name leads, so a name cannot allow it.
    """

    __slots__ = ("_addresses", "_below", "_hosts")

    def __init__(self, domains: Iterable[str]) -> None:
        hosts, below, addresses = set(), [], set()
        for domain in domains:
            host, port = split_port(domain)
            if host.startswith("*."):
                below.append(("." + _ascii(host[2:]), port))
                continue
            hosts.add((plain_host(_ascii(host)), port))
            ip = as_ip(host.strip("[]"))
            if port and ip is not None:
                addresses.add((str(ip), port))
            elif port and host == "localhost":
                addresses.update((address, port) for address in _LOOPBACKS)
        self._hosts = frozenset(hosts)
        self._below = tuple(below)
        self._addresses = frozenset(addresses)

    def __bool__(self) -> bool:
        return bool(self._hosts or self._below)

    def allows(self, host: str, port: int) -> bool:
        """Return whether requests may go to this host and port."""
        name = plain_host(host)
        if (name, 0) in self._hosts or (name, port) in self._hosts:
            return True
        return any(name.endswith(suffix) and p in (0, port) for suffix, p in self._below)

    def check(self, host: str, port: int) -> None:
        """Refuse a host that no entry allows."""
        if not self.allows(host, port):
            name = plain_host(host)[:60]
            raise PolicyError(
                f"host {shown(name)} is not among the allowed hosts",
                "allow it with --allow-domain HOST (MediaPolicy(fetch=True, allow_domains=[HOST]))",
                code="MM210",
            )

    def check_address(self, host: str, port: int, address: str) -> None:
        """Refuse an address of ``host`` that may not be connected to."""
        fault = address_fault(address)
        if fault and (str(as_ip(address)), port) not in self._addresses:
            raise PolicyError(
                f"host {shown(plain_host(host)[:60])} is at {fault}, and only public addresses are fetched",
                "allow exactly this server with --allow-domain ADDRESS:PORT, its IP address and port",
                code="MM210",
            )


def host_entry(domain: object) -> str:
    """Return an entry of ``MediaPolicy.allow_domains`` in lower case; ``.example.com`` becomes ``*.example.com``.

    Raises:
        PolicyError: it is not a host name, IP address or wildcard, or its port is not a port number.
    """
    entry = domain.lower() if isinstance(domain, str) else ""
    try:
        host, port = split_port(entry)
    except ValueError:
        host, port = "", 0
    below = host.startswith((".", "*."))
    name = (host.partition(".")[2] if below else host).removesuffix(".")
    if _IN_ADDRESS.search(name):
        bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
        sound = as_ip(bare) is not None and not below
    else:
        sound = all(name.split(".")) and not _NOT_IN_HOST.search(name)
    if not sound:
        raise PolicyError(
            f"{shown(domain)} is not a host name",
            "write example.com, *.example.com, example.com:8080 or [::1]:8080, without scheme or path",
            code="MM210",
        )
    host = f"*.{name}" if below else name
    return f"{host}:{port}" if port else host


def split_port(domain: str) -> tuple[str, int]:
    """Return host and port of ``host``, ``host:port``, ``::1``, ``[::1]`` or ``[::1]:port``; port 0 if it has none.

    Raises:
        ValueError: the port is not a number from 1 to 65535.
    """
    host, colon, port = domain.rpartition(":")
    if not colon or domain.endswith("]") or (":" in host and not host.endswith("]")):
        return domain, 0
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 1 << 16):
        raise ValueError(port)
    return host, int(port)


def _ascii(host: str) -> str:
    """Return an international name as the library that connects encodes it."""
    if host.isascii():
        return host
    from urllib3.exceptions import LocationParseError  # noqa: PLC0415  # heavy
    from urllib3.util import parse_url  # noqa: PLC0415  # heavy

    try:
        return parse_url(f"http://{host}/").host or host
    except LocationParseError:
        raise PolicyError(f"{shown(host)} is not a host name", "write it as in example.com", code="MM217") from None


def plain_host(host: str) -> str:
    """Return a host in the form used for comparison: lower case, without brackets or final dot."""
    name = host.strip("[]").lower().removesuffix(".")
    ip = as_ip(name)
    if ip is None:
        return name
    # a mapped address stays as it is: an entry 127.0.0.1 does not allow ::ffff:127.0.0.1
    return str(ipaddress.ip_address(name))


def host_and_port(url: str) -> tuple[str, int] | None:
    """Return host and port of a URL, as the library that connects reads them; None if there is no host."""
    from urllib3.exceptions import LocationParseError  # noqa: PLC0415  # heavy
    from urllib3.util import parse_url  # noqa: PLC0415  # heavy

    try:
        parts = parse_url(url[:LONGEST_URL])
    except (LocationParseError, UnicodeError):
        return None
    port = _PORTS.get(parts.scheme or "")
    if not parts.host or port is None:
        return None
    return parts.host, parts.port or port


_SECONDS, _MOST = 60.0, 1024
"""How long a host is remembered, and how many hosts are."""


class DeadHosts:
    """Hosts and ports that did not answer. Safe to share between threads, and across a fork: it has no lock."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}

    def check(self, target: tuple[str, int]) -> None:
        """Refuse a host and port that did not answer a short while ago."""
        since = time.monotonic() - self._since.get(target, -_SECONDS)
        if since < _SECONDS:
            host = shown(f"{target[0]}:{target[1]}", 60)
            raise SourceError(
                f"host {host} could not be connected to {since:.0f} s ago",
                f"check the URL, and the network; it is tried again after {_SECONDS:.0f} s",
                code="MM218",
            )

    def add(self, target: tuple[str, int]) -> None:
        """Remember a host and port; the oldest is forgotten where there are too many."""
        kept = [item for item in self._since.items() if item[0] != target][1 - _MOST :]
        self._since = {**dict(kept), target: time.monotonic()}

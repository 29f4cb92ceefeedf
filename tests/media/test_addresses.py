"""Which addresses are public, and which hosts a policy allows."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmprompt.errors import PolicyError
from mmprompt.media import MediaPolicy
from mmprompt.media.fetch.addresses import address_fault
from mmprompt.media.fetch.hosts import AllowedHosts, host_entry

CLOSED = {
    "a loopback address": ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1"],
    "a private address": ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd00:ec2::254", "::ffff:10.0.0.1"],
    "a link-local address": ["169.254.169.254", "fe80::1", "febf::1", "::ffff:169.254.169.254"],
    "a multicast address": ["224.0.0.1", "239.255.255.255", "ff02::1"],
    "an unspecified address": ["0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0"],
    "an address shared behind carriers": ["100.64.0.1", "100.100.100.200", "100.127.255.255"],
    "a cloud's own address": ["168.63.129.16", "::ffff:168.63.129.16"],
    "a reserved address": ["192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.9", "240.0.0.1", "255.255.255.255", "2001:db8::1", "2001:20::1", "3fff::1", "fec0::1", "5f00::1", "100::1", "4000::1"],
    "an IPv6 address that stands for an IPv4 one": ["64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "2002:7f00:1::", "2002:808:808::1", "2001:0:1234::1", "::127.0.0.1", "::8.8.8.8"],
    "an address with a scope": ["fe80::1%eth0", "2606:4700::1%1"],
    "not an IP address": ["", "localhost", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1 ", "1.2.3.4.5", "[::1]"],
}  # fmt: skip
OPEN = ["8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "168.63.129.15", "192.0.1.1", "198.20.0.1", "223.255.255.255", "2606:4700:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8"]  # fmt: skip


@pytest.mark.parametrize(("fault", "address"), [(fault, a) for fault, many in CLOSED.items() for a in many])
def test_addresses_that_are_not_public_are_named_by_what_they_are(fault, address):
    assert address_fault(address) == fault


@pytest.mark.parametrize("address", OPEN)
def test_public_addresses_are_public(address):
    assert address_fault(address) == ""


@given(st.ip_addresses())
def test_no_address_that_python_calls_private_is_public(address):
    inner = getattr(address, "ipv4_mapped", None) or address
    if not inner.is_global or inner.is_multicast or inner.is_reserved:
        assert address_fault(str(address))


@given(st.ip_addresses(v=4))
def test_an_address_mapped_into_ipv6_is_judged_as_itself(address):
    assert address_fault(f"::ffff:{address}") == address_fault(str(address))
    assert address_fault(str(ipaddress.IPv6Address(f"::ffff:{address}"))) == address_fault(str(address))


@pytest.mark.parametrize(
    ("entry", "plain"),
    [
        ("Example.COM.", "example.com"), (".Example.com", "*.example.com"), ("*.example.com", "*.example.com"),
        ("a.example:8080", "a.example:8080"), ("*.example.com:8443", "*.example.com:8443"), ("10.0.0.5", "10.0.0.5"),
        ("10.0.0.5:80", "10.0.0.5:80"), ("::1", "::1"), ("[::1]", "[::1]"), ("[::1]:65535", "[::1]:65535"), ("under_score.example", "under_score.example"),
    ],
)  # fmt: skip
def test_entries_are_kept_in_one_form(entry, plain):
    assert host_entry(entry) == plain
    assert MediaPolicy(allow_domains=entry).allow_domains == (plain,)


@pytest.mark.parametrize(
    "entry",
    ["", " ", "*", "*.", ".", "..", "a..b", "*a.example", "a.*.example", "*.*.example", "http://a.example", "a.example/x", "u@a.example", "a b", "a\\b", "a.example:0", "a.example:65536", "a.example:x", "a.example:", "a:b:c", "[::1", "::1]", "[a]", "*.::1", "fe80::1%eth0", "a%2eb", "a?b", "a#b", "a\n", None, 3, b"a"],
)  # fmt: skip
def test_what_is_no_host_is_refused_at_once(entry):
    with pytest.raises(PolicyError, match=r"is not a host name; write example.com"):
        MediaPolicy(allow_domains=[entry])


def test_hosts_are_allowed_by_name_by_what_lies_below_and_by_port():
    hosts = AllowedHosts(["a.example", "*.b.example", "c.example:8080", "*.d.example:8443", "bücher.example", "::1"])
    yes = [
        ("a.example", 80), ("A.EXAMPLE.", 9), ("x.b.example", 443), ("x.y.b.example", 80), ("c.example", 8080),
        ("x.d.example", 8443), ("xn--bcher-kva.example", 443), ("[::1]", 80), ("[0:0::1]", 80),
    ]  # fmt: skip
    no = [
        ("b.example", 80), ("xa.example", 80), ("a.example.evil", 80), ("xb.example", 80), ("c.example", 80),
        ("x.d.example", 443), ("localhost", 80), ("127.0.0.1", 80), ("", 80), ("a.example..", 80), ("x.a.example", 80),
    ]  # fmt: skip
    assert [host for host in yes if not hosts.allows(*host)] == []
    assert [host for host in no if hosts.allows(*host)] == []


def test_nothing_is_allowed_without_entries():
    assert not AllowedHosts(())
    assert not AllowedHosts(()).allows("a.example", 80)


def test_an_address_that_is_not_public_is_allowed_by_itself_and_its_port_only():
    hosts = AllowedHosts(["media.example", "cdn.example:8000", "10.0.0.5:8000", "127.0.0.2", "[fd00::5]:81"])
    hosts.check_address("media.example", 8000, "10.0.0.5")
    hosts.check_address("media.example", 8000, "::ffff:10.0.0.5")
    hosts.check_address("media.example", 81, "fd00:0::5")
    hosts.check_address("media.example", 81, "8.8.8.8")
    for host, port, address in [
        ("10.0.0.5", 80, "10.0.0.5"),  # another port
        ("media.example", 8000, "10.0.0.6"),  # another address
        ("cdn.example", 8000, "127.0.0.1"),  # a name with a port: others say what it resolves to
        ("127.0.0.2", 8000, "127.0.0.2"),  # an address without a port
        ("media.example", 81, "fd00::5%eth0"),
    ]:
        with pytest.raises(
            PolicyError, match="and only public addresses are fetched; allow exactly this server with --allow-domain"
        ):
            hosts.check_address(host, port, address)


def test_localhost_with_its_port_stands_for_the_two_loopback_addresses():
    hosts = AllowedHosts(["localhost:8000"])
    assert hosts.allows("LOCALHOST", 8000)
    hosts.check_address("localhost", 8000, "127.0.0.1")
    hosts.check_address("localhost", 8000, "::1")
    with pytest.raises(PolicyError, match="'localhost' is at a private address"):
        hosts.check_address("localhost", 8000, "192.168.0.1")
    with pytest.raises(PolicyError, match="loopback"):
        AllowedHosts(["localhost"]).check_address("localhost", 8000, "127.0.0.1")

"""Which IP addresses may be connected to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject.rules.url.ip_addresses import AddressRules, own_ranges

REFUSED = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.127.255.255",
    "100.100.100.200",
    "192.0.0.192",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "168.63.129.16",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "2001:0:1::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "[::1]",
    "fec0::1",
    "100::1",
    "3fff::1",
    "localhost",
    "127.1",
    "0x7f.1",
    "2130706433",
    "999.1.1.1",
]
ALLOWED = [
    "8.8.8.8",
    "1.1.1.1",
    "172.15.0.1",
    "172.32.0.1",
    "100.63.0.1",
    "100.128.0.1",
    "192.0.1.1",
    "2606:4700::1",
    "2a00:1450::1",
]


@pytest.mark.parametrize("ip", [*REFUSED, "", " "])
def test_inside_addresses_are_refused(ip: str) -> None:
    """Private, loopback, link-local, metadata, multicast, reserved, hidden IPv4, and what is no address."""
    assert AddressRules().refuses(ip)


@pytest.mark.parametrize("ip", ALLOWED)
def test_public_addresses_are_allowed(ip: str) -> None:
    """The neighbours of refused blocks are public."""
    assert not AddressRules().refuses(ip)


def test_a_listed_network_is_allowed_and_only_it() -> None:
    """FETCH_ALLOW_NETWORKS opens exactly what it names, also in its IPv6-mapped spelling."""
    rules = AddressRules(["127.0.0.0/8", "fd00::/64"])
    assert not rules.refuses("127.0.0.1")
    assert not rules.refuses("::ffff:127.0.0.1")
    assert not rules.refuses("fd00::5")
    assert rules.refuses("10.0.0.1")
    assert rules.refuses("::1")
    assert rules.refuses("::ffff:10.0.0.1")
    assert rules.refuses("fd00:0:0:1::5")


def test_a_listed_nat64_prefix_opens_public_addresses_only() -> None:
    """On a network with DNS64 the inside stays shut."""
    rules = AddressRules(["64:ff9b::/96"])
    assert not rules.refuses("64:ff9b::808:808")
    assert rules.refuses("64:ff9b::7f00:1")
    assert rules.refuses("64:ff9b::a9fe:a9fe")


@pytest.mark.parametrize("block", ["10.0.0.0/33", "localhost", ""])
def test_a_bad_block_is_a_value_error(block: str) -> None:
    """The settings reader turns it into a sentence."""
    with pytest.raises(ValueError, match="IPv4 or IPv6"):
        AddressRules([block])


@given(st.ip_addresses(v=4))
def test_mapped_addresses_are_never_freer(ip: object) -> None:
    """Law: hiding an IPv4 address in IPv6 opens nothing."""
    rules = AddressRules()
    assert rules.refuses(f"::ffff:{ip}")


@given(st.text(max_size=20))
def test_any_text_has_an_answer(text: str) -> None:
    """What is no address is refused, without an error."""
    assert AddressRules().refuses(text) or text.strip("[]").count(".") == 3 or ":" in text


def test_own_ranges_are_networks_each_once() -> None:
    """Addresses and blocks of both families, those of examples too."""
    found = own_ranges(["192.0.2.7", " 8.8.8.0/24", "2001:db8::/64", "2a00:1450::/32", "8.8.8.0/24"])
    assert list(map(str, found)) == ["192.0.2.7/32", "8.8.8.0/24", "2001:db8::/64", "2a00:1450::/32"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("8.8.8.8/24", "no network"),
        ("8.8.8", "no network"),
        ("", "no network"),
        ("bot.example", "no network"),
        ("10.1.2.0/24", "not public"),
        ("0.0.0.0/0", "not public"),
        ("192.0.0.0/16", "not public"),  # part of it is
        ("127.0.0.1", "not public"),
        ("fd00::/8", "not public"),
        ("::/0", "not public"),
        ("fe80::1", "not public"),
    ],
)
def test_ranges_that_say_nothing_are_refused(text: str, why: str) -> None:
    """What is no network, and what is private, wholly or in part."""
    with pytest.raises(ValueError, match=why):
        own_ranges(["8.8.8.0/24", text])

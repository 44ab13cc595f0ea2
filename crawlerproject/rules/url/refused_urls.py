"""Decides what is never requested, whatever the crawl: by a URL's extension, port or shape, its host, or its address.

A crawler for text wants no pictures or archives; some ports speak other protocols; a path that nests endlessly, repeats
itself or has a host name as a folder is a trap. A domain on the never-crawl list excludes itself and all below it. Of
IP addresses only public ones may be connected to, and what the operator lists; all doubt refuses.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import NamedTuple

from crawlerproject.rules.url.urls import UrlRefused, host_name, parse

# Mischel ("Writing a web crawler: politeness"): his list of extensions that a crawler for text does not want, word for
# word and in his order.
MISCHEL = (
    "asx bmp css doc docx flv gif jpeg jpg mid mov mp3 ogg pdf png ppt ra ram rm swf wav wma wmv zip m4a m4v mp4 m4b"
)
# What of his list the crawler derives something from, and what that is.
DERIVED = {"pdf": "scrapy process reads its text, title and links"}

SKIP_EXTENSIONS = frozenset(MISCHEL.split()) - DERIVED.keys()  # lower-case, without the dot

# How sitemaps are packed (sitemaps.org): of a sitemap no reason to leave it.
_PACKED_SITEMAPS = frozenset({"gz"})


# Fetch standard (WHATWG), "port blocking", as of 2026: services whose protocols a request of HTTP can be mistaken for.
_FETCH_STANDARD = frozenset(
    {0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109}
    | {110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530}
    | {531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190}
    | {5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
)
# Ours: these read line by line and skip what they do not understand, so that a path can hold a command.
_LINE_BY_LINE = frozenset({6379, 11211})  # Redis, memcached

BAD_PORTS = _FETCH_STANDARD | _LINE_BY_LINE

DEFAULT_MAX_PORTS = 8
"""Other ports of one name that links may add: 8080, 8443, 8000 and what else a machine really shows; ours."""

# Heritrix's TooManyPathSegmentsDecideRule: 20.
MAX_SEGMENTS = 20
# Zeno's path loop rule: a segment that occurs more than three times.
MAX_SAME_SEGMENT = 3
# Zeno again: ten deep or more, with two different segments three times each.
_DEEP_SEGMENTS = 10
# Heritrix's PathologicalPathDecideRule: /x/x/x/ , one sequence of segments three times in a row.
_IN_A_ROW = re.compile(r"((?:/[^/]+){1,5}?)\1\1(?=/|$)")
# Fewer slashes than this cannot repeat anything three times.
_MIN_SLASHES = 3


def url_path(url: str) -> str:
    """Path of an absolute URL, without its first slash; no query."""
    return url.partition("://")[2].partition("?")[0].partition("/")[2]


def useless(path: str, extensions: Collection[str] = SKIP_EXTENSIONS) -> bool:
    """Whether the last segment of a URL's path (no query) ends in one of ``extensions`` (lower-case, no dot)."""
    name = path[path.rfind("/") + 1 :].partition(";")[0]
    dot = name.rfind(".")
    return dot >= 0 and name[dot + 1 :].lower() in extensions


def extensions_of(listed: Collection[str]) -> frozenset[str]:
    """An operator's list as ``useless`` wants it: ".PNG" and "png" are the same."""
    return frozenset(word.strip().lower().lstrip(".") for word in listed if word.strip(" ."))


def of_sitemaps(extensions: Collection[str]) -> frozenset[str]:
    """What of a list is useless as a sitemap too."""
    return frozenset(extensions) - _PACKED_SITEMAPS


def bad_port(host: str) -> bool:
    """Whether a host key names a port at which no web server is to be looked for."""
    if ":" not in host:
        return False
    name = host_name(host)
    return len(name) < len(host) and int(host[len(name) + 1 :]) in BAD_PORTS


def trap(path: str, host_name: str = "") -> bool:
    """Whether a URL's path (no query) looks endless. With ``host_name``, the host's own name as a folder counts
    too: the mark of links that lost their "http://" (browsertrix-crawler issue 931).
    """
    if "." in path and host_name and host_name in path and "." in host_name and host_name in path.split("/"):
        return True
    slashes = path.count("/")
    if slashes < _MIN_SLASHES or slashes > MAX_SEGMENTS:
        return slashes > MAX_SEGMENTS
    segments = [segment for segment in path.split("/") if segment]
    extra = len(segments) - len(set(segments))
    if extra < 1:
        return False
    counts: dict[str, int] = {}
    for segment in segments:
        counts[segment] = counts.get(segment, 0) + 1
    if max(counts.values()) > MAX_SAME_SEGMENT:
        return True
    if len(segments) >= _DEEP_SEGMENTS and sum(count >= MAX_SAME_SEGMENT for count in counts.values()) > 1:
        return True
    if any(count > 1 and segment.startswith("www.") for segment, count in counts.items()):
        return True  # a host name as a folder, twice: a link without its "http://" that found itself
    return extra > 1 and _IN_A_ROW.search(path) is not None


# RFC 1035 2.3.1 and 2.3.4: 63 octets a label, 253 characters a name; "_" occurs in real host names.
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_MOST_CHARACTERS = 254  # with a root dot; of a longer text, which names no host, only the end is looked at
_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")

_DELIMITERS = frozenset("/\\?#@:%")  # of an address; none is within a name


class UnusableLine(NamedTuple):
    """A line that could not be used; ``line`` counts from 1."""

    line: int
    text: str
    why: str


class Exclusion:
    """A list of domains never to be asked for anything. Immutable."""

    __slots__ = ("_lines", "any")

    def __init__(self, lines: Mapping[str, int] | None = None) -> None:
        self._lines: dict[str, int] = dict(lines or {})  # domain or IP address -> line it stands on
        self.any = bool(self._lines)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> tuple[Exclusion, list[UnusableLine]]:
        """Read lines of one domain or IP address each, ``#`` comments; bad ones are returned as problems."""
        found: dict[str, int] = {}
        problems = []
        for number, line in enumerate(lines, 1):
            text = line.partition("#")[0].strip().removeprefix("\ufeff")
            if not text:
                continue
            domain = _domain(text)
            if domain:
                found.setdefault(domain, number)
            else:
                problems.append(UnusableLine(number, text[:100], "is neither a domain nor an IP address"))
        return cls(found), problems

    def __or__(self, other: Exclusion) -> Exclusion:
        """What either list excludes; line numbers are those of the first that has the domain."""
        if not self._lines or not other._lines:
            return self if self._lines else other
        return Exclusion(other._lines | self._lines)

    def excludes(self, host_name: str) -> bool:
        """Whether ``host_name`` (lower-case ASCII, no port) is a listed domain or below one."""
        lines = self._lines
        if not lines:
            return False
        name = host_name[-_MOST_CHARACTERS:]
        while True:
            if name in lines:
                return True
            _, dot, name = name.partition(".")
            if not dot:
                return host_name.endswith(".") and self.excludes(host_name[:-1])

    def domain_of(self, host_name: str) -> str | None:
        """The listed domain that excludes ``host_name``: itself or one above; None when none does."""
        name = host_name.rstrip(".")
        while name and name not in self._lines:
            name = name.partition(".")[2]
        return name or None

    def line_of(self, host_name: str) -> int | None:
        """The line of the list that excludes ``host_name``; None when none does."""
        domain = self.domain_of(host_name)
        return None if domain is None else self._lines[domain]

    @property
    def entries(self) -> Mapping[str, int]:
        """Every listed domain and address, and its line."""
        return self._lines

    @property
    def domains(self) -> frozenset[str]:
        """Every listed domain and address."""
        return frozenset(self._lines)

    def __len__(self) -> int:
        return len(self._lines)


def _domain(text: str) -> str:
    """The listed form of a line ("*.Example.org." is "example.org"); "" when it names no host."""
    bare = text.strip("[]")
    try:
        address = ipaddress.ip_address(bare)
    except ValueError:
        pass
    else:
        return f"[{address.compressed}]" if address.version == 6 else str(address)
    name = text.lower().removeprefix("*").removeprefix(".").removesuffix(".")
    if not name.isascii():
        if not _DELIMITERS.isdisjoint(name):
            return ""
        try:
            name = parse(f"http://{name}/").host
        except UrlRefused:
            return ""
    return name if _NAME.fullmatch(name) else ""


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
_OCTETS = {str(octet): octet for octet in range(256)}
_Spans = tuple[tuple[int, int], ...]


def ipv4_number(text: str) -> int | None:
    """The number of an IPv4 address; None for anything else. In a tenth of the time of ``ip_address``."""
    try:
        first, second, third, fourth = [_OCTETS[octet] for octet in text.split(".")]
    except (KeyError, ValueError):
        return None
    return first << 24 | second << 16 | third << 8 | fourth


def _spans(networks: Iterable[_Network]) -> _Spans:
    """First and last number of those that are IPv4."""
    return tuple((int(each[0]), int(each[-1])) for each in networks if each.version == 4)


def _within_any(number: int, spans: _Spans) -> bool:
    return any(first <= number <= last for first, last in spans)


_REFUSED_SPANS = _spans(_REFUSED_4)


class AddressRules:
    """Which addresses may be connected to; ``allow`` lists CIDR blocks that are allowed although not public."""

    def __init__(self, allow: Sequence[str] = ()) -> None:
        self._allow: tuple[_Network, ...] = tuple(ip_network(block.strip(), strict=False) for block in allow)
        self._allowed_spans = _spans(self._allow)
        self._judged = lru_cache(maxsize=_KEPT)(self._judge)

    def refuses(self, ip: str) -> bool:
        """Whether ``ip`` must not be connected to; what is no IP address is refused."""
        return self._judged(ip)

    def _judge(self, ip: str) -> bool:
        text = ip.strip("[]")
        if (number := ipv4_number(text)) is not None:
            return not self._allowed_4(number)
        try:
            address = IPv6Address(text)
        except ValueError:
            return True
        return not self._allowed_6(address)

    def _allowed_4(self, number: int) -> bool:
        return _within_any(number, self._allowed_spans) or not _within_any(number, _REFUSED_SPANS)

    def _allowed_6(self, address: IPv6Address) -> bool:
        hidden = address.ipv4_mapped
        if hidden is not None:
            return self._listed(hidden)  # never a public answer of DNS, so only by the operator's word
        if address in _NAT64:
            return self._listed(address) and self._allowed_4(int(address) & 0xFFFFFFFF)
        return self._listed(address) or (address in _GLOBAL_6 and not any(address in network for network in _REFUSED_6))

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

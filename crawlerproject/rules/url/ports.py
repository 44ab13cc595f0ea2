"""Decides which ports are never asked, and how many other ports than the default one name may have."""

from __future__ import annotations

from functools import lru_cache

from crawlerproject.rules.url.hosts import host_name

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


@lru_cache(maxsize=65_536)  # a crawl meets the same few keys with a port again and again
def port_of(host: str) -> int:
    """The port in a host key; 0 when it is the scheme's default."""
    name = host_name(host)
    return int(host[len(name) + 1 :]) if len(name) < len(host) else 0


def bad_port(host: str) -> bool:
    """Whether a host key names a port at which no web server is to be looked for."""
    if ":" not in host:
        return False
    name = host_name(host)
    return len(name) < len(host) and int(host[len(name) + 1 :]) in BAD_PORTS


def key_of(name: str, port: int) -> str:
    """The host key of a name at a port; 0 is the scheme's default."""
    return f"{name}:{port}" if port else name

"""robots.txt: the work and the memory that a hostile file costs grow as its length, counted, not timed."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from crawlerproject.rules.robots.policy import parse_robots

# Shapes seen in 4,231 real files, or made to hurt; ``n`` is how often the hostile part is repeated.
SHAPES: dict[str, Callable[[int], bytes]] = {
    "agents and rules": lambda n: b"User-agent: a%d\n" * n % tuple(range(n)) + b"Disallow: /%d\n" * n % tuple(range(n)),
    "one agent a rule": lambda n: b"User-agent: a\nDisallow: /\n" * n,
    "our groups, again and again": lambda n: b"User-agent: foobot\nDisallow: /%d\nAllow: /\n" * n % tuple(range(n)),
    "wildcards": lambda n: b"User-agent: *\n" + b"Disallow: /*%d*?*=$\n" * n % tuple(range(n)),
    "stars": lambda n: b"User-agent: *\nDisallow: /" + b"*a" * n,
    "agents in a line": lambda n: b"User-agent: " + b"a," * n + b"\nDisallow: /\n",
    "blank lines": lambda n: b"\r\n" * n,
    "no line end": lambda n: b"Disallow: /" + b"x" * n,
    "escapes": lambda n: b"User-agent: *\nDisallow: /" + b"%e9" * n,
    "octets": lambda n: b"User-agent: *\nDisallow: /" + bytes(range(128, 256)) * (n // 128),
    "sitemaps": lambda n: b"Sitemap: /%d\n" * n % tuple(range(n)),
    "signals": lambda n: b"User-agent: *\n" + b"Content-Signal: a=%d\n" * n % tuple(range(n)),
    "markup": lambda n: b"<html>" + b"<p>User-agent: *</p>\n" * n,
}
SMALL, LARGE = 2000, 8000  # beyond what is small enough to be kept for other hosts


def calls(body: bytes) -> int:
    """Calls of Python and C functions while the file is parsed and asked once."""
    count = 0

    def counting(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        parse_robots(body, "foobot").allowed("/a/b?c=d")
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("shape", SHAPES)
def test_work_grows_as_the_length(shape: str) -> None:
    """Four times the file is at most some four times the calls (sorting adds a little)."""
    make = SHAPES[shape]
    assert calls(make(LARGE)) <= 5 * calls(make(SMALL)) + 500


@pytest.mark.parametrize("shape", SHAPES)
def test_memory_is_bounded_by_the_length(shape: str) -> None:
    """At the peak at most 250 octets for each of the file's (octets beyond ASCII cost most), and a little."""
    body = SHAPES[shape](LARGE + 1)
    tracemalloc.start()
    try:
        rules = parse_robots(body, "foobot")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert rules.allowed("/robots.txt")
    assert peak <= 250 * len(body) + 200_000

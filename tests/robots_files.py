"""robots.txt files of 500 KiB made to cost a crawler as much as they can."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

from crawlerproject.rules.robots.parser import MAX_BYTES

HEAD = b"User-agent: *\n"


def filled(line: Callable[[int], bytes]) -> bytes:
    """As many lines as a file may have."""
    lines, size = [HEAD], len(HEAD)
    while size + len(made := line(len(lines) - 1)) <= MAX_BYTES:
        lines.append(made)
        size += len(made)
    return b"".join(lines)


def _letters(chance: random.Random, count: int) -> bytes:
    return bytes(chance.choices(b"abcdefghijklmnopqrstuvwxyz0123456789-_", k=count))


def _lettered(line: bytes, count: int) -> bytes:
    """As many lines as a file may have, with ``count`` letters of their own each."""
    chance = random.Random(9309)
    return filled(lambda _: line % tuple(_letters(chance, count)))


def _near_miss(number: int) -> bytes:
    return b"".join((b"*aaab", b"*aaba")[number >> bit & 1] for bit in range(14))


_MAKERS: dict[str, Callable[[], bytes]] = {
    "stars": lambda: HEAD + b"Disallow: /" + b"*a" * 187_000,
    "a thousand stars, again and again": lambda: filled(lambda n: b"Disallow: /" + b"*a" * 1_000 + b"%d\n" % n),
    "one star, a start each": lambda: filled(lambda n: b"Disallow: /p%d*x\n" % n),
    "one star, an end each": lambda: filled(lambda n: b"Disallow: /*p%d\n" % n),
    "one star, the same end": lambda: filled(lambda n: b"Disallow: /*%d.html\n" % n),
    "one star, four thousand": lambda: HEAD + b"".join(b"Disallow: /*%d.html\n" % n for n in range(4_000)),
    "stars and letters": lambda: _lettered(b"Disallow:*%c*%c*%c\n", 3),
    "stars and words": lambda: _lettered(b"Disallow:*%c%c%c\n", 3),
    "near misses": lambda: filled(lambda n: b"Disallow: /*aaaa%b*aaaa\n" % _near_miss(n)),
    "long needles": lambda: filled(lambda n: b"Disallow: /*" + b"a" * 500 + b"b" + b"a" * 490 + b"%d*\n" % n),
    "plain": lambda: filled(lambda n: b"Disallow: /%d\n" % n),
    "short and plain": lambda: _lettered(b"Disallow:/%c%c%c%c\n", 4),
    "within each other": lambda: filled(lambda n: b"Disallow: /" + b"a" * n + b"\n"),
    "allowed within disallowed": lambda: filled(lambda n: (b"Allow: /", b"Disallow: /")[n & 1] + b"a" * n + b"\n"),
    "ends": lambda: filled(lambda n: b"Disallow: /%d$\n" % n),
    "escapes": lambda: filled(lambda n: b"Disallow: /%%e9%%c3%d\n" % n),
    "blank lines": lambda: b"\n" * MAX_BYTES,
    "unknown lines": lambda: filled(lambda n: b"x%d: y\n" % n),
    "blanks": lambda: filled(lambda n: b"Disallow" + b" " * 50_000 + b"x\n"),
    "agents": lambda: filled(lambda n: b"User-agent: a%d\n" % n),
    "octets": lambda: HEAD + b"Disallow: /" + b"\xff" * (MAX_BYTES - 100) + b"\n",
    "numbers": lambda: HEAD + b"Crawl-delay: " + b"9" * (MAX_BYTES - 100) + b"\n",
}
#: What is odd about each of them.
WORST_FILES = tuple(_MAKERS)


@cache
def worst_file(name: str) -> bytes:
    """The one with this oddity; made when it is asked for."""
    return _MAKERS[name]()


def worst_paths() -> dict[str, str]:
    """Paths that such files make the most of; the longest are as long as SCOPE_MAX_URL_LENGTH lets in."""
    chance = random.Random(3986)
    return {
        "ordinary": "/shop/category/item-12345.html?sort=price&page=2&lang=en-gb",
        "of one letter": "/" + "a" * 58,
        "200 characters": "/" + _letters(chance, 199).decode(),
        "2,000 characters": "/" + "".join(chance.choices("abcdefghij/=&?-0123456789.html", k=1_999)),
        "2,000 of one letter": "/" + "a" * 1_000 + "b" + "a" * 998,
        "2,000, escaped": "/" + "%c3" * 666,
    }

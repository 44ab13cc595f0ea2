"""robots.txt files of 500 KiB made to cost a crawler as much as they can."""

from __future__ import annotations

import random
from collections.abc import Callable

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


def worst_files() -> dict[str, bytes]:
    """By what is odd about them."""
    chance = random.Random(9309)
    pairs = [b"*aaab", b"*aaba"]
    return {
        "stars": HEAD + b"Disallow: /" + b"*a" * 187_000,
        "a thousand stars, again and again": filled(lambda n: b"Disallow: /" + b"*a" * 1_000 + b"%d\n" % n),
        "one star, a start each": filled(lambda n: b"Disallow: /p%d*x\n" % n),
        "one star, an end each": filled(lambda n: b"Disallow: /*p%d\n" % n),
        "one star, the same end": filled(lambda n: b"Disallow: /*%d.html\n" % n),
        "one star, four thousand": HEAD + b"".join(b"Disallow: /*%d.html\n" % n for n in range(4_000)),
        "stars and letters": filled(lambda n: b"Disallow:*%b*%b*%b\n" % tuple(_letters(chance, 1) for _ in range(3))),
        "stars and words": filled(lambda n: b"Disallow:*%b\n" % _letters(chance, 3)),
        "near misses": filled(lambda n: b"Disallow: /*aaaa%b*aaaa\n" % b"".join(pairs[n >> k & 1] for k in range(14))),
        "long needles": filled(lambda n: b"Disallow: /*" + b"a" * 500 + b"b" + b"a" * 490 + b"%d*\n" % n),
        "plain": filled(lambda n: b"Disallow: /%d\n" % n),
        "short and plain": filled(lambda n: b"Disallow:/%b\n" % _letters(chance, 4)),
        "within each other": filled(lambda n: b"Disallow: /" + b"a" * n + b"\n"),
        "allowed within disallowed": filled(lambda n: (b"Allow: /", b"Disallow: /")[n & 1] + b"a" * n + b"\n"),
        "ends": filled(lambda n: b"Disallow: /%d$\n" % n),
        "escapes": filled(lambda n: b"Disallow: /%%e9%%c3%d\n" % n),
        "blank lines": b"\n" * MAX_BYTES,
        "unknown lines": filled(lambda n: b"x%d: y\n" % n),
        "blanks": filled(lambda n: b"Disallow" + b" " * 50_000 + b"x\n"),
        "agents": filled(lambda n: b"User-agent: a%d\n" % n),
        "octets": HEAD + b"Disallow: /" + b"\xff" * (MAX_BYTES - 100) + b"\n",
        "numbers": HEAD + b"Crawl-delay: " + b"9" * (MAX_BYTES - 100) + b"\n",
    }


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

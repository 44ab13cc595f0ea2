"""Every regular expression takes time in proportion to its text, whatever that is: found and attacked by itself."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.patterns import ROOT, Attack, Found, all_patterns, attacks
from tests.spending import TooSlow, bounded

#: What a page, a robots.txt or a header may bring, and a size at which squares are seen without being waited for.
LARGE, MEDIUM, SMALL = 250_000, 32_000, 8_000
#: CPU seconds. The slowest of ours takes 0.05 for the large size; what is quadratic takes from seven seconds to hours.
MOST_SECONDS = 1.0
#: A square that takes longer than the bound at the large size takes longer than this at the small one,
SUSPICIOUS_SECONDS = MOST_SECONDS * (SMALL / LARGE) ** 2 / 4
#: and sixteen times that at the medium one, where what is linear takes four times as long.
SUSPICIOUS_GROWTH = 7.0

#: Called under another name than their own: what is asked of them is told here.
ASKED = {
    "_PHP_VALUE": {"fullmatch"},
    "_JAVA_VALUE": {"fullmatch"},
    "_HEX_VALUE": {"fullmatch"},
    "_ASP_VALUE": {"fullmatch"},
    "_ANY_VALUE": {"fullmatch"},
    "_NO_VALUE": {"fullmatch"},
    "_COLDFUSION_NAMES": {"fullmatch"},
}
#: Patterns that no stranger's text of any length reaches, and why.
EXEMPT = {"_SERIAL": "names of files in the operator's own folder: 255 octets at most"}

ALL = list(all_patterns(ROOT / "crawlerproject"))
PATTERNS = [found for found in ALL if found.name not in EXEMPT]


def ask(pattern: re.Pattern[Any], method: str, text: Any) -> float:
    """CPU seconds of one call."""
    began = time.process_time()
    with bounded(MOST_SECONDS):
        if method in ("sub", "subn"):
            getattr(pattern, method)(text[:0], text)
        elif method == "finditer":
            list(pattern.finditer(text))
        else:
            getattr(pattern, method)(text)
    return time.process_time() - began


def grows(pattern: re.Pattern[Any], method: str, attack: Attack) -> bool:
    """Whether the large size is worth a try: the small one took its time, and the medium one far more."""
    seconds = ask(pattern, method, attack.text(pattern, SMALL))
    if seconds <= SUSPICIOUS_SECONDS:
        return False
    return ask(pattern, method, attack.text(pattern, MEDIUM)) > SUSPICIOUS_GROWTH * seconds


def worst(found: Found) -> str:
    """The attack under which the pattern exceeds the bound; "" when it holds against all."""
    for attack in attacks(found.pattern):
        for method in ASKED.get(found.name, found.methods):
            try:
                if attack.plain or grows(found.pattern, method, attack):
                    ask(found.pattern, method, attack.text(found.pattern, LARGE))
            except TooSlow:
                return f"{method} of {attack.start[:40]!r} + n x {attack.unit[:40]!r} + {attack.end!r}"
    return ""


@pytest.mark.parametrize("found", PATTERNS, ids=lambda found: found.place)
def test_pattern_is_linear(found: Found) -> None:
    """A quarter of a megabyte of what hurts it most takes less than the bound."""
    assert worst(found) == ""


@pytest.mark.parametrize(
    ("slow", "method"),
    [
        (r"\s*(?=[\d.])\d*[\d.]*\s*[;,\s]\s*(?:url\s*=\s*)?(.*)", "fullmatch"),  # links._REFRESH as it was
        (r"(habilit\w+|activ\w+|ative)\s+(el\s+|o\s+)?java\s?script", "search"),  # triage._NOTICE as it was
        (r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[0-9A-Za-z]{10,}", "sub"),  # templates._MIXED as it was
        (r"(?im)^isPartOf:[ \t]*([^\r\n]*?)[ \t]*\r?$", "search"),  # columns._PART_OF as it was
        (r"x*y", "search"),
    ],
)
def test_the_test_can_fail(slow: str, method: str) -> None:
    """Patterns that were slow, and two of the textbook, are caught."""
    assert worst(Found("", "", re.compile(slow), frozenset({method})))


def test_all_are_found() -> None:
    """Patterns of every room that reads foreign bytes, bound to names or not; the exempted ones exist."""
    names = {found.name for found in ALL}
    assert {"_REFRESH", "_NOTICE", "_KNOWN_LINES", "_STATUS_LINE", "_CHUNK_LINE", "_EXCESS", "_CLASS"} <= names
    assert set(EXEMPT) | set(ASKED) <= names
    assert len(PATTERNS) >= 60

"""Every regular expression takes time in proportion to its text, whatever that is: found and attacked by itself."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.patterns import ROOT, Attack, Found, attacks, files, patterns_of
from tests.spending import TooSlow, bounded

#: What a page, a robots.txt or a header may bring, and a size at which squares are seen without being waited for.
LARGE, MEDIUM, SMALL = 50_000, 16_000, 4_000
#: CPU seconds. The slowest of ours takes 0.01 for the large size; what is quadratic takes a quarter of a second.
MOST_SECONDS = 0.15
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

PACKAGE = ROOT / "crawlerproject"
FILES = files(PACKAGE)  # parsed by the one worker that has the test, not by all


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


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_patterns_are_linear(path: Path) -> None:
    """Fifty kilobytes of what hurts each most take less than the bound."""
    slow = {found.place: worst(found) for found in patterns_of(path, PACKAGE) if found.name not in EXEMPT}

    assert {place: attack for place, attack in slow.items() if attack} == {}


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
    found = [pattern for path in FILES for pattern in patterns_of(path, PACKAGE)]
    names = {pattern.name for pattern in found}
    assert {"_REFRESH", "_NOTICE", "_KNOWN_LINES", "_STATUS_LINE", "_CHUNK_LINE", "_EXCESS", "_CLASS"} <= names
    assert set(EXEMPT) | set(ASKED) <= names
    assert len(found) >= 60 + len(EXEMPT)

"""rules/globs: what an operator's patterns match, and that no URL makes one of them slow."""

from __future__ import annotations

import fnmatch
import random
from functools import partial

import pytest

from crawlerproject.rules.url.globs import MAX_CHARACTERS, BadGlob, first_match, glob, globs
from tests.spending import spent


@pytest.mark.parametrize(
    ("pattern", "url", "matches"),
    [
        ("/blog/*", "https://example.org/blog/a?b=c", True),
        ("/blog/*", "https://example.org/blog", False),
        ("/blog/*", "https://example.org/x/blog/a", False),
        ("/*?print=*", "https://example.org/a?print=1", True),
        ("/*?print=*", "https://example.org/aprint=1", False),
        ("/", "https://example.org/", True),
        ("/", "https://example.org/?a", False),
        ("*/tag/*", "https://example.org/a/tag/x", True),
        ("*/tag/*", "https://example.org/a/tags/x", False),
        ("*.pdf", "https://example.org/a.pdf", True),
        ("*.pdf", "https://example.org/a.pdf?x", False),
        ("*.example.org/*", "https://www.example.org/", True),
        ("*.example.org/*", "https://example.org/", False),
        ("example.org/a*a", "https://example.org/a", False),
        ("example.org/a*a", "https://example.org/aa", True),
        ("https://example.org/*", "https://example.org/x", True),
        ("https://example.org/*", "http://example.org/x", False),
        ("/ä/*", "https://example.org/%C3%A4/x", True),
        ("*", "https://example.org/", True),
        ("/**a**b*", "https://example.org/a.b", True),
        ("/a.b+(c)[d]", "https://example.org/a.b+(c)[d]", True),
        ("/a.b", "https://example.org/a-b", False),
    ],
)
def test_a_pattern_matches_all_of_its_part(pattern: str, url: str, matches: bool) -> None:
    """Path and query, host and all behind it, or the whole URL; a star is any characters, nothing else is special."""
    assert glob(pattern).matches(url) is matches


def test_it_agrees_with_another_matcher() -> None:
    """fnmatch, of which only the star is used, on texts that nearly match."""
    rng = random.Random(7)
    for _ in range(5_000):
        pattern = "/" + "".join(rng.choice("ab*") for _ in range(rng.randrange(8)))
        path = "/" + "".join(rng.choice("ab") for _ in range(rng.randrange(10)))
        assert glob(pattern).matches("https://x.test" + path) == fnmatch.fnmatchcase(path, pattern), (pattern, path)


@pytest.mark.parametrize("pattern", ["calendar", "pdf$", "a" * (MAX_CHARACTERS + 1) + "*"])
def test_what_matches_nothing_is_refused(pattern: str) -> None:
    """A word without star or slash was meant otherwise; a pattern has a length."""
    with pytest.raises(BadGlob, match="pattern"):
        glob(pattern)


def test_patterns_are_separated_by_blanks() -> None:
    """As a text or as a list; the first that matches is named."""
    patterns = globs(" /a/*  *.pdf ")

    assert [pattern.text for pattern in patterns] == ["/a/*", "*.pdf"] == [one.text for one in globs(["/a/*", "*.pdf"])]
    found = first_match(patterns, "https://example.org/x.pdf")
    assert found is not None
    assert found.text == "*.pdf"
    assert first_match(patterns, "https://example.org/x") is None


@pytest.mark.parametrize(
    ("pattern", "unit"), [("*a" * 100 + "b", "a"), ("/" + "a*" * 100 + "b", "a"), ("*" + "a" * 200 + "b*", "a"),
                          ("*ab*ab*ab*ab*c", "ab"), ("*/" * 50 + "!", "/")],
)  # fmt: skip
def test_time_grows_with_the_url_alone(pattern: str, unit: str) -> None:
    """URLs made to be looked at again and again, a thousand times as long as any that is let in."""
    matcher = glob(pattern)

    def seconds(size: int) -> float:
        url = "https://x.test/" + unit * (size // len(unit))
        best = float("inf")
        for _ in range(3):
            best = min(best, spent(partial(matcher.matches, url)))
        assert not matcher.matches(url)
        return best

    small, large = seconds(250_000), seconds(1_000_000)
    assert large < max(0.05, 10 * small)  # four times as long; a square would be sixteen
    assert large < 2.0

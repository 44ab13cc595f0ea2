"""Decides what a page asks of robots about itself: meta robots and X-Robots-Tag, RFC 9309's companions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class PageRobots(NamedTuple):
    """What a page forbids."""

    nofollow: bool  # follow no link of this page
    noindex: bool  # recorded, not acted upon: an archive is not a search index
    ai: tuple[str, ...] = ()  # words on use by artificial intelligence, in order: recorded for users of the archive


# Directives that take a value after a colon: without this list "max-snippet: 20" would read as an agent's name.
_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
# Of no standard; noai and noimageai come from DeviantArt, noml from Mojeek.
_AI_WORDS = frozenset({"noai", "noimageai", "noml"})
FREE = PageRobots(False, False)


def page_robots(metas: Iterable[tuple[str, str]], x_robots: Iterable[str], token: str) -> PageRobots:
    """Join all that applies to us; the strictest word wins.

    ``metas`` are (name, content) of meta elements, ``x_robots`` the values of X-Robots-Tag headers,
    ``token`` our product token; names match without case.
    """
    token = token.lower()
    words: set[str] = set()
    for name, content in metas:
        if name.strip().lower() in ("robots", token):
            words.update(_words(content))
    for value in x_robots:
        words.update(_header_words(value, token))
    if not words:
        return FREE
    none = "none" in words
    return PageRobots(none or "nofollow" in words, none or "noindex" in words, tuple(sorted(words & _AI_WORDS)))


def _words(content: str) -> list[str]:
    # Commas by the book; blanks and semicolons in the wild.
    return content.lower().replace(",", " ").replace(";", " ").split()


def _header_words(value: str, token: str) -> list[str]:
    # "otherbot: noindex, nofollow": an agent's name holds for the directives after it, up to the next name.
    ours, words = True, []
    for part in value.lower().split(","):
        name, colon, rest = part.partition(":")
        if colon and name.strip() not in _VALUED:
            ours = name.strip() in (token, "*", "robots")
            part = rest
        elif colon:
            continue
        if ours:
            words.extend(_words(part))
    return words

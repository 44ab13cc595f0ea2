"""Patterns of URLs that an operator writes: ``*`` stands for any characters, everything else for itself.

No regular expressions: matching takes time in proportion to the URL, whatever URL a site invents.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import quote

# Of one pattern: what a URL costs at most is this times its length.
MAX_CHARACTERS = 500
# All of ASCII stays as it is; other characters stand in URLs as the escapes of their UTF-8 octets (RFC 3986 2.5).
_AS_THEY_ARE = "".join(map(chr, range(0x21, 0x7F)))


class BadGlob(ValueError):
    """A pattern that was meant otherwise; the message is a sentence for the operator."""


class Glob(NamedTuple):
    """One pattern, taken apart at its stars."""

    text: str  # as it was written
    place: str  # what it is matched with: "url", "path" (with the query) or "host" (host and path, no scheme)
    head: str
    parts: tuple[str, ...]  # between two stars
    tail: str | None  # None: there is no star, so that ``head`` is all

    def matches(self, url: str) -> bool:
        """Whether the pattern matches a URL, written as ``rules.urls`` writes it, from its beginning to its end."""
        subject = url
        if self.place != "url":
            subject = url.partition("://")[2]
            if self.place == "path":
                subject = subject[subject.find("/") :]
        if self.tail is None:
            return subject == self.head
        at, end = len(self.head), len(subject) - len(self.tail)
        if end < at or not subject.startswith(self.head) or not subject.endswith(self.tail):
            return False
        for part in self.parts:  # the first place is as good as any later one
            at = subject.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return True


def glob(text: str) -> Glob:
    """A pattern as it was written. Raises BadGlob.

    ``/blog/*`` is matched with path and query, ``https://…`` with the whole URL, anything else with host and path:
    ``example.org/a/*``, ``*.pdf``.
    """
    if len(text) > MAX_CHARACTERS:
        raise BadGlob(f"the pattern {text[:40]!r}… has over {MAX_CHARACTERS} characters")
    if "*" not in text and "/" not in text:
        raise BadGlob(f"the pattern {text!r} would match no URL; * stands for any characters: *{text}*")
    place = "url" if "://" in text else "path" if text.startswith("/") else "host"
    pieces = quote(text, safe=_AS_THEY_ARE).split("*")
    if len(pieces) == 1:
        return Glob(text, place, pieces[0], (), None)
    return Glob(text, place, pieces[0], tuple(filter(None, pieces[1:-1])), pieces[-1])


def globs(text: str | Sequence[str]) -> tuple[Glob, ...]:
    """Patterns separated by blanks, which no URL has, or a list of them. Raises BadGlob."""
    return tuple(map(glob, text.split() if isinstance(text, str) else map(str, text)))


def first_match(patterns: Iterable[Glob], url: str) -> Glob | None:
    """The first of the patterns that matches."""
    for pattern in patterns:
        if pattern.matches(url):
            return pattern
    return None

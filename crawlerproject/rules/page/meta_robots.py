"""Decides what a page forbids robots (meta robots, X-Robots-Tag), and what of an owner's word on AI is recorded.

What owners say of use becomes lines of the capture's metadata record: the headers and meta elements of one page
(Content-Usage, draft-ietf-aipref-attach; Content-Signal, https://contentsignals.org; TDM-Reservation and TDM-Policy,
W3C's TDMRep), the words of its X-Robots-Tag and meta robots, and what its site says. ``consent.verdict``
judges them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from crawlerproject.rules.consent.terms import words_within
from crawlerproject.rules.consent.verdict import AI_WORDS, DOUBT, Note, Source

# Directives that take a value after a colon: without this list "max-snippet: 20" would read as an agent's name.
_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
HEADERS = ("Content-Usage", "Content-Signal", "TDM-Reservation", "TDM-Policy", "Link")
_AI_METAS = frozenset({"tdm-reservation", "tdm-policy"})
# RSL 1.0: Link: <https://site.example/license.xml>; rel="license"; type="application/rsl+xml".
_LICENSE_LINK = re.compile(r"<([^<>]{1,2000}+)>[^<>]*?application/rsl\+xml")
_LICENSE_TYPE = "application/rsl+xml"  # sought first: most Link headers are about something else
RSL_TYPE, RSL_SPACE = _LICENSE_TYPE.encode(), b"rslstandard.org/rsl"
"""In the bytes of a page or feed that has or names a licence of RSL (1.0, sections 4.3 to 4.6)."""
# <link rel="license" type="application/rsl+xml" href="…">, and the licence itself in a script.
_LICENSE_TAG = re.compile(rb"<(link|script)\b([^<>]{0,2000}+)>", re.IGNORECASE)
_SCRIPT_END = re.compile(rb"</script", re.IGNORECASE)
_HREF = re.compile(rb"""(?<![\w-])href\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'>]++))""", re.IGNORECASE)
_MOST_LINK_CHARACTERS = 8000
# Values are free text: as much as any honest one needs.
_MOST_CHARACTERS = 500
_MOST_LINES = 20


class PageRobots(NamedTuple):
    """What a page forbids, and what it states."""

    nofollow: bool  # follow no link of this page
    noindex: bool  # recorded, not acted upon: an archive is not a search index
    ai_use: Sequence[Note] = ()  # what it states about use by artificial intelligence


FREE = PageRobots(False, False)


def page_robots(metas: Iterable[tuple[str, str]], x_robots: Iterable[str], token: str) -> PageRobots:
    """Join all that applies to us; the strictest word wins.

    ``metas`` are (name, content) of meta elements, ``x_robots`` the values of X-Robots-Tag headers,
    ``token`` our product token; names match without case.
    """
    token = token.lower()
    words: set[str] = set()
    stated: list[Note] = []
    for name, content in metas:
        name = name.strip().lower()
        if name == "robots" or name == token:
            words.update(_words(content))
        elif name in _AI_METAS:
            stated.append((str(Source.PAGE), f"{name}: {content}"))
    for value in x_robots:
        words.update(_header_words(value, token))
    if not words and not stated:
        return FREE
    none = "none" in words
    notes = [(str(Source.PAGE), word) for word in sorted(words & AI_WORDS)] + stated
    return PageRobots(none or "nofollow" in words, none or "noindex" in words, bounded(notes))


def stated_by_site(site: Iterable[Note], headers: Iterable[Note]) -> list[Note]:
    """What the site states of this page's use, and what this answer's headers do; an RSL licence in ``Link`` is one."""
    answered = list[Note]()
    for name, value in headers:
        if name != "Link":
            answered.append((str(Source.HEADER), f"{name.lower()}: {value}"))
        elif _LICENSE_TYPE in value and (found := _LICENSE_LINK.search(value[:_MOST_LINK_CHARACTERS])):
            answered.append((str(Source.HEADER), f"license: {found[1]}"))
    return bounded(list(site)) + bounded(answered)


def licenses_of_page(source: bytes, url: str) -> list[Note]:
    """The licences of RSL that an HTML page with ``RSL_TYPE`` in it names, as ``stated_by_site`` words them.

    Of those that it has in itself the words.
    """
    found: list[Note] = []
    for tag in islice((tag for tag in _LICENSE_TAG.finditer(source) if RSL_TYPE in tag[2]), _MOST_LINES):
        href = _HREF.search(tag[2]) if tag[1].lower() == b"link" else None
        if href is not None:
            found.append((str(Source.PAGE), f"license: {b''.join(href.groups(b'')).decode('utf-8', 'replace')}"))
        elif tag[1].lower() == b"script":
            end = _SCRIPT_END.search(source, tag.end())
            found += words_within(source[tag.end() : end.start() if end else len(source)].strip(), url)
        else:
            found.append((str(Source.LICENSE), f"{DOUBT}: a licence without an address"))
    return bounded(found)


def license_of_feed(body: bytes, url: str) -> list[Note]:
    """The words of the licences that the entries of a feed have: they are in its text."""
    return words_within(body, url, feed=True) if RSL_SPACE in body else []


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


def bounded(notes: Iterable[Note]) -> list[Note]:
    """As many lines as any honest page needs, each of one line's length."""
    return [(name, " ".join(value.split())[:_MOST_CHARACTERS]) for name, value in islice(notes, _MOST_LINES)]

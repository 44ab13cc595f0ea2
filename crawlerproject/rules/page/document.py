"""What one walk over a page's tree gives, whichever reader walks; and the numbers that both readers share."""

from __future__ import annotations

from typing import NamedTuple

# "Web Crawler" asks for a browser under 200 words or under 3 links; as an alternative that is 28 % of a manual's pages,
# so it is the entrance to triage's score, not the verdict.
ENOUGH_WORDS = 200
ENOUGH_LINKS = 3
EMPTY_ROOT_WORDS = 20  # "Loading …" and the like
# Elements of a kind whose text is looked at: a page has one or two, and what lies within each other is read each time.
MOST_ELEMENTS = 20
# Characters in which a request to enable JavaScript is looked for: fewer than 200 words are all in them.
MOST_NOTICE = 20_000


class Shell(NamedTuple):
    """What a page shows and asks for without its scripts: what ``rules/rendering/triage.py`` judges."""

    source_bytes: int
    words: int
    links: int  # different ones, counted up to ENOUGH_LINKS
    script_characters: int  # of scripts that are executed
    shown_characters: int
    shown: str  # the first MOST_NOTICE of these; empty with ENOUGH_WORDS words
    notice: str  # of noscript elements, as many
    empty_root: bool  # an element that an application fills is empty


class Document(NamedTuple):
    """One page as it is written: nothing is resolved yet."""

    targets: list[str]  # what links ask to be followed, in order, without those of rel=nofollow
    nofollow: int  # how many those are
    metas: list[tuple[str, str]]  # name and content
    base: str | None  # href of the first base element
    canonical: str | None  # href of the first rel=canonical
    title: str
    words: int  # visible; a CJK character is one
    text: bytes  # visible, without links and frame, in UTF-8
    fingerprint: int | None  # SimHash of ``text``
    shell: Shell | None  # of a page with scripts that are executed, and few words or few links


def looks_whole(words: int, links: int) -> bool:
    """Whether a page has enough of both: then nothing else is looked at."""
    return words >= ENOUGH_WORDS and links >= ENOUGH_LINKS

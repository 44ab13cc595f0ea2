"""Decides what to record of an owner's word on use by artificial intelligence. It is recorded, not acted upon.

The lines of robots.txt (Content-Signal, https://contentsignals.org; Content-Usage, draft-ietf-aipref-attach), the
headers and meta elements of one page (Content-Usage; TDM-Reservation and TDM-Policy, W3C's TDMRep), and the words
of its X-Robots-Tag and meta robots. They become lines of the capture's metadata record, so that those who use the
archive can keep to them without asking the site again.
"""

from __future__ import annotations

from collections.abc import Iterable

HEADERS = ("Content-Usage", "Content-Signal", "TDM-Reservation", "TDM-Policy")
_METAS = frozenset({"tdm-reservation", "tdm-policy"})
# Values are free text: as much as any honest one needs.
_MOST_CHARACTERS = 500
_MOST_LINES = 20

Note = tuple[str, str]


def stated_by_site(signals: Iterable[str], headers: Iterable[Note]) -> list[Note]:
    """Lines for the metadata record: what robots.txt says to us, and what this answer's headers say."""
    notes = [("ai-use-robots-txt", signal) for signal in signals]
    notes += [("ai-use-header", f"{name.lower()}: {value}") for name, value in headers]
    return _bounded(notes)


def stated_by_page(metas: Iterable[Note], words: Iterable[str]) -> list[Note]:
    """The same for what a page's meta elements and robots words say."""
    notes = [("ai-use-page", word) for word in words]
    notes += [("ai-use-page", f"{name.strip().lower()}: {text}") for name, text in metas if _is_ours(name)]
    return _bounded(notes)


def _is_ours(name: str) -> bool:
    return name.strip().lower() in _METAS


def _bounded(notes: list[Note]) -> list[Note]:
    return [(name, " ".join(value.split())[:_MOST_CHARACTERS]) for name, value in notes[:_MOST_LINES]]

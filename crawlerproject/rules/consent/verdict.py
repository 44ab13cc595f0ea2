"""Decides what pages may be for, and whether a site's words on that are obeyed."""

from __future__ import annotations

PURPOSES = ("archive", "search", "research", "ai-train", "ai-input")
"""What pages may be for; the first is the default."""
_OBEYING = frozenset({"ai-train", "ai-input"})


def obeys(purpose: str, consent: str) -> bool:
    """Whether words that reserve pages from ``purpose`` are obeyed, by the setting CONSENT."""
    return consent == "obey" or (consent == "auto" and purpose in _OBEYING)

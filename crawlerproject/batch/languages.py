"""Which language a text is in."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

# Shorter texts are guesses: below some words the detector names rare languages.
_MIN_CHARACTERS = 60
# More text changes the answer for one page in a thousand and costs time for all.
_MAX_CHARACTERS = 2000
_MIN_PROBABILITY = 0.8

# One tag with a primary subtag of ISO 639-1 (RFC 5646 2.1, RFC 9110 8.5): several say for whom a page is, not in what.
_ONE_TAG = re.compile(r"\s*([A-Za-z]{2})(?:-[A-Za-z0-9-]{1,60}+)?\s*")


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # 2 MB of model: only where it is needed

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def language_of(text: str) -> str | None:
    """ISO 639-1 code; None when the text is too short or the answer too unsure."""
    if len(text) < _MIN_CHARACTERS:
        return None
    # From the middle: a page begins with its menus.
    start = max(0, (len(text) - _MAX_CHARACTERS) // 2)
    language, probability = _identifier().classify(text[start : start + _MAX_CHARACTERS])
    return str(language) if probability >= _MIN_PROBABILITY else None


def language_of_header(content_language: str) -> str | None:
    """ISO 639-1 code of a Content-Language header that names one language."""
    found = _ONE_TAG.fullmatch(content_language)
    return found[1].lower() if found else None

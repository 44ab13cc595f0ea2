"""Which language a text is in."""

from __future__ import annotations

from functools import cache
from typing import Any

# Shorter texts are guesses: below some words the detector names rare languages.
_MIN_CHARACTERS = 60
# More text changes the answer for one page in a thousand and costs time for all.
_MAX_CHARACTERS = 2000
_MIN_PROBABILITY = 0.8


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

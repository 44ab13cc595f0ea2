"""Decides in what language a text is: by its words, and by what its site says where these leave it open.

The model is py3langid's. Its walk over the text and its sums are done natively, where that is built: the answers are
the same, probabilities to the fifth digit, at an eighth of the price (``benchmarks/languages.py``).
"""

from __future__ import annotations

import re
from array import array
from functools import cache
from typing import Any

import numpy as np
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from crawlerproject import native

# Shorter texts are guesses: below some words the detector names rare languages.
_MIN_CHARACTERS = 60
# More text changes the answer for one page in a thousand and costs time for all.
_MAX_CHARACTERS = 2000
_MIN_PROBABILITY = 0.8
# One tag with a primary subtag of ISO 639-1 (RFC 5646 2.1, RFC 9110 8.5): several say for whom a page is, not in what.
_ONE_TAG = re.compile(r"\s*([A-Za-z]{2})(?:-[A-Za-z0-9-]{1,60}+)?\s*")


class _Identifier(LanguageIdentifier):  # type: ignore[misc]  # py3langid has no types
    """py3langid's, with the steps over bytes in C."""

    __slots__ = ("_places", "_states", "_steps")

    def __init__(self, nb_ptc: Any, *args: Any, **kwargs: Any) -> None:
        # In two bytes a number each sum has to widen all the rows that it takes.
        super().__init__(np.ascontiguousarray(nb_ptc, np.float32), *args, **kwargs)
        self._steps = np.asarray(self.tk_nextmove, np.uint32)  # 39 MB, not copied
        self._states = np.ascontiguousarray(np.transpose((self.tk_row, self.tk_output)), np.int32)
        self._places = array("I", bytes(4 * len(nb_ptc)))

    def _raw_score(self, text: bytes) -> Any:
        if (page := native.reader) is None:
            return super()._raw_score(text)
        sums = page.scores(self._steps, self._states, self._places, self.nb_ptc, text)
        return np.frombuffer(sums, np.float32) + self.nb_pc if sums else super()._raw_score(b"")


@cache
def _identifier() -> _Identifier:
    made: _Identifier = _Identifier.from_model_file(MODEL_FILE, norm_probs=True)
    return made


def language_of(text: str, *declared: str) -> str | None:
    """ISO 639-1 code; of a text too short or too unsure the one that the first of the ``declared`` tags names, or None.

    A tag is not asked before the text: ``lang="en"`` stands in many a template (``benchmarks/languages.py``).
    """
    if len(text) >= _MIN_CHARACTERS:
        # From the middle: a page begins with its menus.
        start = max(0, (len(text) - _MAX_CHARACTERS) // 2)
        language, probability = _identifier().classify(text[start : start + _MAX_CHARACTERS])
        if probability >= _MIN_PROBABILITY:
            return str(language)
    return next((code for tag in declared if (code := language_of_tag(tag))), None)


def language_of_tag(tag: str) -> str | None:
    """ISO 639-1 code of a Content-Language header, or a ``lang`` attribute, that names one language."""
    found = _ONE_TAG.fullmatch(tag)
    return found[1].lower() if found else None

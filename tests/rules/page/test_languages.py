"""The language of a text, and the native walk through py3langid's model."""

from __future__ import annotations

from array import array

import numpy as np
import pytest
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from crawlerproject import native
from crawlerproject.rules.page import languages
from crawlerproject.rules.page.languages import language_of, language_of_tag

TEXTS = (
    "Dies ist ein langer deutscher Satz über nichts, mit Kommas, und mit einem Ende, das noch kommt.",
    "Ceci n'est pas une phrase très longue, mais elle est assez française pour être reconnue partout.",
    "ЭТО ПРЕДЛОЖЕНИЕ НАПИСАНО БОЛЬШИМИ БУКВАМИ, И ЕГО ЯЗЫК ВСЁ РАВНО ДОЛЖЕН БЫТЬ УЗНАН БЕЗ ТРУДА.",
    "これは日本語で書かれた文章です。言語を判定するために十分な長さがあることを願っています。" * 2,
    "0 " * 40,
    "\ud800 and a lone half of a pair, which no encoding has, among words of a language that is known",
)


def test_the_native_walk_gives_py3langids_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code and probability; in Python to the last bit."""
    theirs, ours = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True), languages._identifier()
    expected = [theirs.classify(text) for text in TEXTS]

    assert [ours.classify(text) for text in TEXTS] == [(code, pytest.approx(sure, abs=1e-5)) for code, sure in expected]
    monkeypatch.setattr(native, "reader", None)
    assert [ours.classify(text) for text in TEXTS] == expected


def test_the_text_is_asked_first() -> None:
    """What is declared counts where the text leaves it open, the first that names one language."""
    assert [language_of(text, "en", "it") for text in TEXTS[:4]] == ["de", "fr", "ru", "ja"]
    assert [language_of("Salut", *declared) for declared in (("de, en", "fr-CA"), ("", "x-klingon"), ())] == [
        "fr",
        None,
        None,
    ]


@pytest.mark.parametrize(
    ("tag", "code"), [("de", "de"), (" EN-us ", "en"), ("de, en", None), ("", None), ("deu", None), ("x" * 9, None)]
)
def test_a_tag_names_one_language(tag: str, code: str | None) -> None:
    """RFC 9110, 8.5: several languages are those of the audience."""
    assert language_of_tag(tag) == code


@pytest.mark.parametrize(
    ("steps", "states"),
    [([0] * 255, [(0, -1)]), ([1] * 256, [(0, -1)]), ([0] * 256, [(7, -1)]), ([0] * 256, [(0, 9)]), ([], [])],
)
def test_a_model_with_wrong_numbers_is_refused(steps: list[int], states: list[tuple[int, int]]) -> None:
    """No step leads out of its tables, and no feature out of the places."""
    page = native.reader
    if page is None:
        pytest.skip("the native reader has not been built")
    places = array("I", [0, 0, 0])

    with pytest.raises(ValueError, match="out of its tables"):
        table = np.zeros((3, 2), np.float32)
        page.scores(np.array(steps, np.uint32), np.array(states, np.int32), places, table, b"\xff")
    assert list(places) == [0, 0, 0]

"""The article of a page without its frame, as Resiliparse finds it."""

from __future__ import annotations

import pytest

pytest.importorskip("resiliparse")

from crawlerproject.rules.page.main_text import can_find_main_text, main_text

ARTICLE = "Sentences of an article, with commas, and an end. " * 20
PAGE = f"""<!doctype html><title>t</title><body><nav><ul><li><a href=/>Home</a><li><a href=/b>Other</a></ul></nav>
<main><article><h1>Größe</h1><p>{ARTICLE}</p></article></main><footer>Imprint {"and terms " * 30}</footer>"""


def test_the_frame_is_left_out_and_measured() -> None:
    """What stands in the article is there, in the page's encoding; the share is of letters."""
    found = main_text(PAGE.encode("latin-1"), "text/html; charset=iso-8859-1")

    assert can_find_main_text()
    assert found is not None
    assert found.text.startswith("Größe\n")
    assert "Sentences of an article" in found.text
    assert not {"Home", "Imprint"} & set(found.text.split())
    assert 0.15 < found.boilerplate < 0.5


@pytest.mark.parametrize("body", [b"", b"<p>", b"<b>" * 100_000 + b"<p>" * 100_000])
def test_a_page_that_says_nothing_or_costs_too_much_has_none(body: bytes) -> None:
    """Bombs are left out as in every reading of ours."""
    assert main_text(body, "text/html") is None

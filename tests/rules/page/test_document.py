"""rules/page/document: when a page says enough."""

import pytest

from crawlerproject.rules.page.document import looks_whole


@pytest.mark.parametrize(("words", "links", "whole"), [(200, 3, True), (199, 3, False), (200, 2, False)])
def test_words_and_links_suffice(words: int, links: int, whole: bool) -> None:
    """Nothing else is looked at when a page has enough of both."""
    assert looks_whole(words, links) is whole

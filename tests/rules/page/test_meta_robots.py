"""rules/page_robots: what a page asks of robots, in its head or in its headers."""

import pytest

from crawlerproject.rules.page.meta_robots import page_robots


@pytest.mark.parametrize(
    ("metas", "headers", "nofollow", "noindex"),
    [
        ([], [], False, False),
        ([("robots", "noindex, nofollow")], [], True, True),
        ([("ROBOTS", "NONE")], [], True, True),
        ([("OurBot", "nofollow")], [], True, False),
        ([("googlebot", "nofollow")], [], False, False),
        ([("robots", "index,follow"), ("robots", "noindex")], [], False, True),
        ([("robots", "noindex nofollow")], [], True, True),
        ([], ["nofollow"], True, False),
        ([], ["ourbot: nofollow"], True, False),
        ([], ["otherbot: noindex, nofollow"], False, False),
        ([], ["otherbot: noindex, ourbot: nofollow"], True, False),
        ([], ["max-snippet: 20, nofollow"], True, False),
        ([], ["unavailable_after: 25 Jun 2030 15:00:00 PST", "noindex"], False, True),
    ],
)
def test_strictest_word_for_us_wins(
    metas: list[tuple[str, str]], headers: list[str], nofollow: bool, noindex: bool
) -> None:
    """Names match without case; another agent's words are not ours."""
    assert page_robots(metas, headers, "OurBot")[:2] == (nofollow, noindex)


def test_words_on_artificial_intelligence_are_told() -> None:
    """Those of pages and headers together, each once; other agents' are not ours."""
    metas, headers = [("robots", "noai, noimageai")], ["noai, nofollow", "otherbot: noml"]
    assert page_robots(metas, headers, "OurBot") == (True, False, ("noai", "noimageai"))

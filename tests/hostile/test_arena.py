"""The arena itself: it crawls, logs and judges."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.arena import Asked, arena, page


def test_an_innocent_site_is_crawled_whole_and_its_gaps_are_seen(tmp_path: Path) -> None:
    """Twelve pages, their robots.txt, and no gap beyond the pace; a site that was not asked is not undisturbed."""
    with arena(tmp_path) as web:
        seed = web.innocent(pages=12)

        web.crawl(seed)

        assert len(web.of("innocent.test")) == 12
        assert len(web.of("innocent.test", robots=True)) == 13
        web.assert_undisturbed(least=12)
        with pytest.raises(AssertionError, match="asked 0 times"):
            web.assert_undisturbed("nobody.test")


def test_a_crawl_is_stopped_once_something_was_seen_and_continues(tmp_path: Path) -> None:
    """Two starts on one folder ask no page twice."""
    with arena(tmp_path) as web:
        seeds = web.innocent(), web.site("other.test", _front)

        web.crawl(*seeds, until=lambda: len(web.of("innocent.test")) >= 5)
        web.crawl(*seeds, until=lambda: len(web.of("innocent.test")) >= 10)

        paths = web.paths("innocent.test")
        assert len(paths) >= 10
        assert len(set(paths)) >= len(paths) - 1  # at most what was on its way at the stop
        assert web.paths("other.test") == ["/"]


def _front(asked: Asked) -> bytes | None:
    return page(text="only this") if asked.path == "/" else None

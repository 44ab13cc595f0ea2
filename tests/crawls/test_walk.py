"""The walk of one URL, as docs/architecture.md tells it, against a crawl that is traced."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.crawls.entered import CRAWL, FOUND, REQUESTED, traced
from tests.web.zygote import PROJECT

DOC = PROJECT / "docs" / "architecture.md"
#: What a page may take (ours): as measured by ``python -m tests.crawls.entered``, with a little room.
MOST = {
    FOUND: {"files": 74, "functions": 380, "deepest": 14},
    REQUESTED: {"files": 53, "functions": 190, "deepest": 14},
}

_MOST_CRAWLS = 5  # the beats differ from crawl to crawl: by ten files, and now and then by twenty (seen)


def told() -> set[str]:
    """The files that the section names."""
    section = DOC.read_text().partition("## The walk of one URL")[2].partition("\n## ")[0]
    return set(re.findall(r"`([a-z_0-9]+/[a-z_0-9/]+\.py|items\.py)`", section)) - {"tests/crawls/test_walk.py"}


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Of some crawls of six pages, the whole process traced, the one in which least of the loops' beats fell in.

    What the page itself takes is in each of them, so one that keeps within the bounds is enough.
    """
    found = [traced(tmp_path_factory.mktemp("walk"))]
    while len(found) < _MOST_CRAWLS and any(beyond(found[-1], way) for way in MOST):
        found.append(traced(tmp_path_factory.mktemp("walk")))
    return min(found, key=lambda ways: sum(ways[way]["functions"] for way in MOST))


def beyond(ways: dict[str, dict[str, Any]], way: str) -> dict[str, int]:
    """The figures that are higher than they may be."""
    return {figure: ways[way][figure] for figure, most in MOST[way].items() if ways[way][figure] > most}


def test_a_url_enters_the_files_of_its_walk(ways: dict[str, dict[str, Any]]) -> None:
    """None is named that the crawl did not enter."""
    assert len(told()) >= 25  # the section was found
    assert told() - set(ways[CRAWL]["entered"]) == set()


@pytest.mark.parametrize("way", MOST)
def test_a_page_enters_no_more_than_it_did(ways: dict[str, dict[str, Any]], way: str) -> None:
    """Who adds a layer sees it here; who takes some away lowers the bounds."""
    assert beyond(ways, way) == {}

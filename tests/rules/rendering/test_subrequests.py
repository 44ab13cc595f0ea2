"""Which sub-requests of a rendered page are sent."""

import pytest

from crawlerproject.rules.rendering.subrequests import embed_refusal
from crawlerproject.rules.rendering.trackers import TRACKERS, is_tracker


@pytest.mark.parametrize("kind", ["script", "xhr", "fetch"])
def test_scripts_and_their_data_are_sent(kind: str) -> None:
    """A page's words and links need nothing else."""
    assert embed_refusal(kind, "GET", "a.test", asked=0, max_asked=1) == ""


@pytest.mark.parametrize("kind", ["image", "media", "font", "stylesheet", "websocket", "ping", "eventsource"])
def test_other_kinds_are_refused_by_their_name(kind: str) -> None:
    """Whatever Playwright calls it."""
    assert embed_refusal(kind, "GET", "a.test", asked=0, max_asked=1) == kind


def test_the_other_refusals_have_a_word() -> None:
    """Methods that change something, trackers, and too many."""
    assert embed_refusal("fetch", "POST", "a.test", asked=0, max_asked=1) == "method"
    assert embed_refusal("script", "GET", "ssl.google-analytics.com", asked=0, max_asked=1) == "tracker"
    assert embed_refusal("script", "GET", "a.test", asked=1, max_asked=1) == "too-many"


def test_a_tracker_is_a_whole_domain() -> None:
    """Its subdomains are meant, names that only end alike are not; nothing in the list has a path or a port."""
    assert is_tracker("doubleclick.net")
    assert is_tracker("Stats.G.DoubleClick.net.")
    assert not is_tracker("notdoubleclick.net")
    assert not is_tracker("net")
    assert all("." in name and "/" not in name and ":" not in name for name in TRACKERS)

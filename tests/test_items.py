"""What a render leaves in the archive's metadata record."""

from __future__ import annotations

from collections import Counter

from crawlerproject.items import Rendered, RenderFailed
from crawlerproject.reasons import Reason


def test_its_lines_say_what_the_browser_did() -> None:
    """Counts in the order of their words, addresses as they came."""
    rendered = Rendered(
        "http://a.test/",
        browser="Chromium 131.0",
        viewport="1280x720",
        wait_rule="until it rests",
        asked=3,
        cached=2,
        waited_seconds=1.2345,
        blocked=Counter({"image": 4, "frame": 1}),
        blocked_urls=["frame http://ads.test/"],
        navigations=["http://a.test/next"],
        noise=Counter({"popup": 2}),
        settled=True,
    )

    assert rendered.facts() == [
        ("browser", "Chromium 131.0"),
        ("viewport", "1280x720"),
        ("waitRule", "until it rests"),
        ("settled", "yes"),
        ("requestsSent", "3"),
        ("requestsFromCache", "2"),
        ("waitedForTurnsMs", "1234"),
        ("requestsBlocked", "frame 1"),
        ("requestsBlocked", "image 4"),
        ("blocked", "frame http://ads.test/"),
        ("navigationNotFollowed", "http://a.test/next"),
        ("popupDismissed", "2"),
    ]
    assert ("settled", "no") in Rendered("http://a.test/").facts()


def test_a_failure_carries_what_there_is() -> None:
    """And by whose fault it failed."""
    rendered = Rendered("http://a.test/")
    failure = RenderFailed(Reason.RENDER_FAILED, "Target crashed", rendered, again=True)

    assert (failure.reason, failure.detail, failure.rendered, failure.again) == (
        Reason.RENDER_FAILED,
        "Target crashed",
        rendered,
        True,
    )
    assert not RenderFailed(Reason.RENDER_TIMEOUT, "late").again

"""Sub-requests that are sent and shared, and why there is no sandbox."""

from __future__ import annotations

import pytest

from crawlerproject.rules.rendering.browser_limits import (
    TRACKERS,
    Reuse,
    hopeless,
    is_tracker,
    refused_by,
    reuse,
    sent_fields,
    subresource_refusal,
)


@pytest.mark.parametrize("kind", ["script", "xhr", "fetch"])
def test_scripts_and_their_data_are_sent(kind: str) -> None:
    """A page's words and links need nothing else."""
    assert subresource_refusal(kind, "GET", "a.test", asked=0, max_asked=1) == ""


@pytest.mark.parametrize("kind", ["image", "media", "font", "stylesheet", "websocket", "ping", "eventsource"])
def test_other_kinds_are_refused_by_their_name(kind: str) -> None:
    """Whatever Playwright calls it."""
    assert subresource_refusal(kind, "GET", "a.test", asked=0, max_asked=1) == kind


def test_the_other_refusals_have_a_word() -> None:
    """Methods that change something, trackers, and too many."""
    assert subresource_refusal("fetch", "POST", "a.test", asked=0, max_asked=1) == "method"
    assert subresource_refusal("script", "GET", "ssl.google-analytics.com", asked=0, max_asked=1) == "tracker"
    assert subresource_refusal("script", "GET", "a.test", asked=1, max_asked=1) == "too-many"


def test_a_tracker_is_a_whole_domain() -> None:
    """Its subdomains are meant, names that only end alike are not; nothing in the list has a path or a port."""
    assert is_tracker("doubleclick.net")
    assert is_tracker("Stats.G.DoubleClick.net.")
    assert not is_tracker("notdoubleclick.net")
    assert not is_tracker("net")
    assert all("." in name and "/" not in name and ":" not in name for name in TRACKERS)


def test_two_pages_requests_differ_in_origin_alone() -> None:
    """Which is why no other field in a Vary matters: whatever the browser would send."""
    asked = {"accept": "text/html", "cookie": "a=b", "referer": "http://a.test/", "accept-language": "de"}
    assert sent_fields(asked) == sent_fields({}) == {"Accept": "*/*"}
    assert sent_fields({"origin": "http://a.test", **asked}) == {"Accept": "*/*", "Origin": "http://a.test"}


SCRIPT, DATA, FAILURE = 86_400.0, 3_600.0, Reuse(300.0, by_origin=True, own_site=True)
OPEN = {"access-control-allow-origin": "*"}


@pytest.mark.parametrize(
    ("status", "headers", "kind", "for_whom"),
    [
        (200, OPEN, "script", Reuse(SCRIPT, by_origin=False, own_site=False)),
        (200, OPEN, "fetch", Reuse(DATA, by_origin=False, own_site=False)),
        (200, OPEN | {"vary": "Accept-Encoding, Cookie"}, "xhr", Reuse(DATA, by_origin=False, own_site=False)),
        (200, OPEN | {"vary": "Accept-Encoding, ORIGIN"}, "script", Reuse(SCRIPT, by_origin=True, own_site=False)),
        (200, OPEN | {"vary": "*"}, "script", None),
        (200, OPEN | {"vary": "Accept, *"}, "script", None),
        (
            200,
            {"access-control-allow-origin": "http://a.test"},
            "script",
            Reuse(SCRIPT, by_origin=True, own_site=False),
        ),
        (200, {}, "script", Reuse(SCRIPT, by_origin=True, own_site=False)),
        (200, OPEN | {"cache-control": "no-store"}, "script", Reuse(SCRIPT, by_origin=False, own_site=True)),
        (200, OPEN | {"cache-control": "no-store"}, "fetch", None),
        (200, OPEN | {"cache-control": "Private, max-age=3"}, "xhr", None),
        (200, OPEN | {"content-type": "text/html; charset=utf-8"}, "script", FAILURE),
        (200, OPEN | {"content-type": "text/html"}, "fetch", Reuse(DATA, by_origin=False, own_site=False)),
        (302, OPEN, "script", Reuse(SCRIPT, by_origin=False, own_site=False)),
        (206, OPEN, "script", None),
        (403, OPEN, "script", FAILURE),
        (404, OPEN, "fetch", FAILURE),
        (410, OPEN | {"vary": "*"}, "script", None),
        (408, OPEN, "script", None),
        (429, OPEN, "script", None),
        (500, OPEN, "script", None),
        (503, OPEN, "fetch", None),
    ],
)
def test_for_whom_an_answer_is(status: int, headers: dict[str, str], kind: str, for_whom: Reuse | None) -> None:
    """By its status, its Vary, whom it names as allowed, and what it says of caches."""
    assert reuse(status, headers, kind) == for_whom


def test_an_answer_behind_redirects_serves_what_all_of_them_serve() -> None:
    """A host may send one origin elsewhere than another."""
    anyone, private = Reuse(10.0, by_origin=False, own_site=False), Reuse(20.0, by_origin=False, own_site=True)
    assert anyone.and_of(anyone) == anyone
    assert private.and_of(Reuse(5.0, by_origin=True, own_site=False)) == Reuse(5.0, by_origin=True, own_site=True)


def test_root_need_not_try() -> None:
    """Chromium refuses it to root, wherever it runs."""
    assert "root" in hopeless(is_root=True)
    assert hopeless(is_root=False) == ""


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ("Target closed\nBrowser logs:\n\nChromium sandboxing failed!\n====", True),
        ("FATAL:zygote_host_impl_linux.cc(132)] No usable sandbox! If you are running on Ubuntu 23.10+", True),
        ("The setuid sandbox is not running as root. Common causes:", True),
        ("error while loading shared libraries: libnss3.so", False),
        ("", False),
    ],
)
def test_only_a_refused_sandbox_is_one(words: str, refused: bool) -> None:
    """A browser that dies of anything else is not started without its sandbox for that."""
    assert bool(refused_by(words)) is refused

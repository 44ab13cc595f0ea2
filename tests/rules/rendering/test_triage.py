"""Which plain answers are sent to a browser."""

import pytest

from crawlerproject.rules.rendering.triage import RenderNeed, triage
from tests.web.answers import page_html, text
from tests.web.shells import shells

SHELLS = shells()
HTML = "text/html; charset=utf-8"
# No word says that it is an application: only its host's history can.
MISSED = {"ember, with a frame"}


def test_there_are_at_least_a_hundred_shells() -> None:
    """Built by real generators and by hand, bare and fattened."""
    assert len(SHELLS) >= 100


@pytest.mark.parametrize("name", sorted(SHELLS.keys() - MISSED))
def test_shells_are_noticed(name: str) -> None:
    """Every shell is rendered, or left to what renders gained at its host before."""
    assert triage(SHELLS[name].encode(), HTML).verdict is not RenderNeed.PLAIN


def test_nearly_all_shells_are_rendered_at_once() -> None:
    """At least 95 of 100 need no history."""
    sure = sum(triage(html.encode(), HTML).verdict is RenderNeed.RENDER for html in SHELLS.values())

    assert sure / len(SHELLS) >= 0.95


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page_html("ordinary", ["/1", "/2", "/3"]), id="ordinary"),
        pytest.param(page_html("thin", ["/1"], body="<p>Only a few words.</p>"), id="thin, without a script"),
        pytest.param(
            page_html("counted", ["/1", "/2"], body=f"<p>{text('x', 60)}</p><script src='/analytics.js'></script>"),
            id="short, with a script",
        ),
        pytest.param(
            page_html("data", body="<p>Few words</p><script type='application/ld+json'>{}</script>"),
            id="a script that is data",
        ),
        pytest.param(
            page_html("root", ["/1", "/2", "/3"], body=f"<div id=root>{text('y', 300)}</div><script src=x></script>"),
            id="rendered by the server",
        ),
        pytest.param(b"", id="empty"),
        pytest.param(b"<script", id="cut"),
        pytest.param(b"<div>" * 60_000 + b"<script>1</script>", id="a parser bomb"),
    ],
)
def test_ordinary_pages_are_left_alone(page: bytes) -> None:
    """Neither few words nor a script alone make an application."""
    assert triage(page, HTML).verdict is RenderNeed.PLAIN


def test_the_signals_are_named() -> None:
    """The verdict's reasons are words for the archive and the shell."""
    found = triage(SHELLS["create-react-app, thin"].encode(), HTML)

    assert "empty application root" in found.signals
    assert str(found).startswith("render (score ")

"""A page that could end the process is read in another one, where the Python reader is in use."""

from __future__ import annotations

import pytest

from crawlerproject import native
from crawlerproject.rules.page.page import read_light_html
from crawlerproject.rules.page.parser_faults import may_break_the_parser

BREAKS = b"<svg>" + b"<option selected>" * 200
FACTS = {"url": "http://a.test/", "content_type": "text/html", "x_robots": [], "token": "TestBot"}


@pytest.fixture
def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fallback."""
    monkeypatch.setattr(native._state, "choice", native.Choice(None, "a test says so"))


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize(
    ("body", "may"),
    [
        (BREAKS, True),
        (b"<MATH><mi><OPTION a='>' Selected=x>", True),
        (b"<p><svg></svg><select><option>1<option selected>2</select>", True),  # harmless, and not told apart
        (b"<select><option selected>2</select><svg></svg>", False),
        (b"<svg><path></svg><p class=selected><select><option>1</select>", False),
        (b"<p>option selected svg", False),
    ],
)
def test_an_option_that_is_selected_behind_foreign_elements(body: bytes, may: bool) -> None:
    """Told by the order of three words, which costs next to nothing."""
    assert may_break_the_parser(body) == may


@pytest.mark.usefixtures("in_python")
def test_such_a_page_is_not_read_in_place() -> None:
    """Nor parsed at all here: this process would end."""
    assert read_light_html(BREAKS, **FACTS) is None  # type: ignore[arg-type]


@pytest.mark.skipif(native.reader() is None, reason=f"one reader only: {native.choice().why}")
def test_the_native_reader_reads_it() -> None:
    """Its lexbor is corrected: again and again, with memory that another page has used."""
    for _ in range(20):
        facts = read_light_html(BREAKS + b"<a href=/x>x", **FACTS)  # type: ignore[arg-type]

        assert facts is not None
        assert len(facts.links) == 1

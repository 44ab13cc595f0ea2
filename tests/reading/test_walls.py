"""Which answers are anti-bot walls: none of the ordinary web's, all of those that vendors send."""

from __future__ import annotations

import pytest

from crawlerproject.rules.row_kinds import FLAG_SITEMAP
from tests.reading.wall_shapes import CHL, JSD, ORDINARY, SAYS_CHL, WALLS, Shape, bare, page, read


def named(shape: Shape) -> str:
    """For a test's name."""
    return f"{shape.vendor}: {shape.name}"


@pytest.mark.parametrize("shape", ORDINARY, ids=named)
def test_no_ordinary_answer_is_a_wall(shape: Shape) -> None:
    """Whatever snippet, header, cookie, form or quotation it has."""
    assert read(shape).challenge == ""


@pytest.mark.parametrize("shape", WALLS, ids=named)
def test_every_wall_is_known(shape: Shape) -> None:
    """By what it sends, and its marks say by which."""
    found = read(shape)
    assert (found.challenge, found.wall_marks.partition(":")[0]) == (shape.vendor, shape.vendor)


def test_the_shapes_are_many() -> None:
    """At least 60 ordinary ones of ten vendors; of each vendor with a wall there is an ordinary answer too."""
    vendors = {shape.vendor for shape in ORDINARY}
    assert len(ORDINARY) >= 60
    assert len(vendors) >= 10
    assert {shape.vendor for shape in WALLS} <= vendors
    assert all(shape.source for shape in (*ORDINARY, *WALLS))


@pytest.mark.parametrize(
    ("shape", "marks"),
    [
        (Shape("", "", 200, page(100, body=JSD), ""), "cloudflare: /cdn-cgi/challenge-platform/"),
        (Shape("", "", 200, page(500, links=30), "", {"X-DataDome": "protected"}), "datadome: x-datadome"),
        (Shape("", "", 200, page(30), "", {"Set-Cookie": "incap_ses_1=a"}), "imperva: set-cookie: incap_ses_"),
        (Shape("", "", 200, page(30), ""), ""),
    ],
)
def test_soft_marks_are_noted(shape: Shape, marks: str) -> None:
    """What ordinary pages have too."""
    assert (read(shape).challenge, read(shape).wall_marks) == ("", marks)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(page(260, body=CHL), id="more words than a wall has"),
        pytest.param(page(20, body=CHL, links=12), id="more links than a wall has"),
        pytest.param(bare(SAYS_CHL), id="what a challenge runs, as text"),
    ],
)
def test_a_page_that_says_something_is_a_page(body: bytes) -> None:
    """In place of a sitemap as well."""
    for flags in (0, FLAG_SITEMAP):
        assert read(Shape("", "", 200, body, ""), flags).challenge == ""
    assert read(Shape("", "", 200, bare(CHL + " " * 70_000), "")).challenge == ""  # larger than a wall is


def test_a_wall_in_place_of_a_sitemap() -> None:
    """It is one all the same."""
    assert read(Shape("", "", 200, bare(CHL), ""), FLAG_SITEMAP).challenge == "cloudflare"


def test_a_status_that_no_wall_has() -> None:
    """A missing page is one, whatever its body; a header that only a wall has counts with any status."""
    assert read(Shape("", "", 404, bare(CHL), "")).challenge == ""
    assert read(Shape("", "", 404, bare(CHL), "", {"Cf-Mitigated": "challenge"})).challenge == "cloudflare"

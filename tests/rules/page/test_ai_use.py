"""What owners say about use by artificial intelligence, as lines of the metadata record."""

from crawlerproject.rules.page.ai_use import stated_by_page, stated_by_site
from crawlerproject.rules.page.page import read_html


def test_robots_txt_and_headers() -> None:
    """Each with where it was said, as it was written."""
    notes = stated_by_site(["search=yes, ai-train=no"], [("TDM-Reservation", "1"), ("Content-Usage", "train-ai=n")])
    assert notes == [
        ("ai-use-robots-txt", "search=yes, ai-train=no"),
        ("ai-use-header", "tdm-reservation: 1"),
        ("ai-use-header", "content-usage: train-ai=n"),
    ]


def test_meta_elements_and_words() -> None:
    """Only those that are about it."""
    assert stated_by_page([("TDM-Policy", "/tdm.json"), ("author", "x")], ["noai"]) == [
        ("ai-use-page", "noai"),
        ("ai-use-page", "tdm-policy: /tdm.json"),
    ]


def test_values_cannot_break_the_record() -> None:
    """Line ends and endless values stay out of it, and so do endless lines."""
    notes = stated_by_site(["a\r\nWARC-Type: evil " + "x" * 10_000] * 100, [])
    assert len(notes) == 20
    assert all("\n" not in value and len(value) == 500 for _, value in notes)


def test_a_page_that_is_read() -> None:
    """From its head and from its X-Robots-Tag."""
    html = b'<html><head><meta name="robots" content="noai"><meta name="tdm-reservation" content="1"></head></html>'
    facts = read_html(html, url="http://a.example/", content_type=None, x_robots=["noimageai"], token="x")
    assert facts.ai_use == [
        ("ai-use-page", "noai"),
        ("ai-use-page", "noimageai"),
        ("ai-use-page", "tdm-reservation: 1"),
    ]

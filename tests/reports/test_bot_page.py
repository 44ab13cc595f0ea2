"""The page about the bot: what it promises is what the settings say, and it is valid whatever they hold."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from crawlerproject.reports.bot_page import Bot, bot_page

BOT = Bot(
    name="ExampleBot",
    user_agent="ExampleBot/1.0 (+https://example.org/bot)",
    contact="bot@example.org",
    operator="Example Org",
    purpose="We study the web.",
    addresses=["192.0.2.1", "2001:db8::/64"],
    start_seconds=5.0,
    least_seconds=1.0,
    most_seconds=60.0,
    multiplier=10.0,
    robots_hours=24.0,
    max_bytes=10_000_000,
)
VOID = {"meta", "link", "br", "input"}


class Text(HTMLParser):
    """The text of a page; fails where an element is not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.links: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One more is open."""
        if tag not in VOID:
            self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_endtag(self, tag: str) -> None:
        """It closes the last one."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """As a reader sees it."""
        self.text += " ".join(data.split()) + " "


def test_it_says_what_the_settings_say() -> None:
    """Name, addresses, pace, robots.txt, contact."""
    page = Text(bot_page(BOT))
    for said in (
        "User-agent: ExampleBot Crawl-delay: 30",
        "User-agent: ExampleBot Disallow: /",
        "ExampleBot/1.0 (+https://example.org/bot)",
        "It is run by Example Org.",
        "We study the web.",
        "192.0.2.1 2001:db8::/64",
        "10 times the mean time that your server took to answer, at least 1 and at most 60 seconds.",
        "reads it again after 24 hours",
        "at most 10,000,000 bytes of a page",
    ):
        assert said in page.text
    assert page.links == ["mailto:bot@example.org"]


@pytest.mark.parametrize(
    ("changes", "there", "gone"),
    [
        ({"operator": ""}, "", "It is run by"),
        ({"purpose": ""}, "", "We study"),
        ({"addresses": []}, "Its addresses may change.", "It asks from"),
        ({"contact": ""}, "Tell us the host", "Write to"),
        ({"contact": "https://example.org/contact"}, "Write to https://example.org/contact", ""),
        ({"most_seconds": None}, "at least 1 seconds", "at most 60"),
        ({"quiet": True}, "three times slower", ""),
        ({"quiet": False}, "", "three times slower"),
        ({"multiplier": 0.0}, "1 seconds between an answer's end and the next request.", "times the mean"),
    ],
)
def test_what_is_not_set_is_left_out(changes: dict[str, Any], there: str, gone: str) -> None:
    """No empty sentence, and no promise that does not hold."""
    text = Text(bot_page(replace(BOT, **changes))).text
    assert there in text
    assert not gone or gone not in text


def test_settings_cannot_break_the_page() -> None:
    """They are text, wherever they stand."""
    evil = "</pre><script>alert(1)</script>"
    page = bot_page(
        replace(BOT, name=evil, user_agent=evil, contact=evil, operator=evil, purpose=evil, addresses=[evil])
    )
    assert page.count("<script") == 1  # ours
    assert Text(page).text.count("alert(1)") >= 6

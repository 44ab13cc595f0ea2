"""A page looked at in a real Chromium."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from playwright.sync_api import sync_playwright

from crawlerproject.render.chromium import find_chromium

_HEIGHT = 900


class Looked(NamedTuple):
    """What the browser saw."""

    messages: list[str]  # of the console, and errors of the page
    requests: list[str]  # every URL that was asked for; data: URLs are none
    page_width: int  # of what scrolls, CSS pixels
    headings: list[str]  # of the second level
    text: str


def look_at(url: str, width: int) -> Looked:
    """Open the page in a window of this width; the test is skipped where no Chromium is installed."""
    program = find_chromium("")
    if program is None:
        pytest.skip("no Chromium is installed")
    messages: list[str] = []
    requests: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            page = browser.new_page(viewport={"width": width, "height": _HEIGHT})
            page.on("console", lambda message: messages.append(message.text))
            page.on("pageerror", lambda error: messages.append(str(error)))
            page.on("request", lambda request: requests.append(request.url))
            page.goto(url)
            return Looked(
                messages,
                [asked for asked in requests if not asked.startswith("data:")],
                page.evaluate("document.documentElement.scrollWidth"),
                [heading.inner_text() for heading in page.query_selector_all("h2")],
                page.inner_text("body"),
            )
        finally:
            browser.close()

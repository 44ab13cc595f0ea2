"""A page looked at in a real Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from crawlerproject.config.chromium import find_chromium

_HEIGHT = 900


@dataclass
class Window:
    """One open page; ``messages`` are of the console, breaches of its policy included, and errors of its scripts."""

    page: Page
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def wait(self, expression: str) -> None:
        """Until it is true in the page. By polling from here: the page's policy lets nobody evaluate strings in it."""
        self.page.wait_for_timeout(0)
        for _ in range(_MOST_LOOKS):
            if self.page.evaluate(expression):
                return
            self.page.wait_for_timeout(_LOOK_MS)
        raise AssertionError(f"never true: {expression}; the page says {self.page.inner_text('body')[:2000]}")

    @property
    def width(self) -> int:
        """Of what scrolls, CSS pixels."""
        return int(self.page.evaluate("document.documentElement.scrollWidth"))

    def clipped(self) -> list[str]:
        """Texts that are wider than what they stand in and cannot be scrolled to."""
        found: list[str] = self.page.evaluate(_CLIPPED)
        return found


_LOOK_MS, _MOST_LOOKS = 100, 300
# Of HTML: text beyond the window's edge outside of what scrolls by itself; of SVG: text beyond its picture.
_CLIPPED = """() => {
  const found = [], wide = document.documentElement.clientWidth;
  for (const node of document.querySelectorAll("body *")) {
    if (!node.checkVisibility() || node.closest(".scroll, pre") || ![...node.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect(), svg = node.ownerSVGElement?.getBoundingClientRect();
    if (box.left < (svg?.left ?? 0) - 1 || box.right > (svg?.right ?? wide) + 1) found.push(node.textContent.trim());
  }
  return found;
}"""  # noqa: E501


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all of a module's windows, none of whose tests may run an event loop; skipped where none is installed."""
    program = find_chromium("")
    if program is None:
        pytest.skip("no Chromium is installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()


@contextmanager
def window(browser: Browser, width: int, scheme: str = "light") -> Iterator[Window]:
    """A window of this width, with a profile of its own."""
    page = browser.new_page(
        viewport={"width": width, "height": _HEIGHT}, color_scheme="dark" if scheme == "dark" else "light"
    )
    opened = Window(page)
    page.on("console", lambda message: opened.messages.append(message.text))
    page.on("pageerror", lambda error: opened.messages.append(str(error)))
    page.on("dialog", lambda dialog: opened.messages.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: opened.requests.append(request.url))
    try:
        yield opened
    finally:
        page.close()

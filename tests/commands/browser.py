"""A page looked at in a real Chromium."""

from __future__ import annotations

import base64
import hashlib
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from crawlerproject.config.chromium import find_chromium
from tests.web.running import PROJECT

_HEIGHT = 900
AXE = "axe-core@4.14.1"
AXE_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
SERIOUS = ("serious", "critical")
_AXE_SECONDS = 120.0


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

    def inaccessible(self, axe: str) -> list[str]:
        """What axe-core finds that is serious, where."""
        self.page.evaluate(axe)  # by the browser's own door: the page's policy does not ask
        found: list[dict[str, Any]] = self.page.evaluate("async () => (await axe.run(document)).violations")
        return [
            f"{each['id']} ({each['help']}) at {[node['target'] for node in each['nodes']][:3]}"
            for each in found
            if each["impact"] in SERIOUS
        ]


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
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            # With a page that stays, each further one is a tab: a window costs Chromium 0.14 s of CPU more (measured).
            started.new_context().new_page()
            yield started
        finally:
            started.close()


@cache
def axe_source() -> str:
    """The script, fetched by npm when it is not in ``build/axe``. OSError, CalledProcessError, TimeoutExpired.

    Raises RuntimeError when it is not the pinned one.
    """
    folder = Path(PROJECT, "build", "axe")
    packed = folder / f"{AXE.replace('@', '-')}.tgz"
    if not packed.exists():
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "pack", "--silent", "--pack-destination", str(folder), AXE]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=_AXE_SECONDS)
    if base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode() != AXE_SHA512:
        raise RuntimeError(f"{packed} is not the {AXE} that is pinned here")
    with tarfile.open(packed) as archive:
        member = archive.extractfile("package/axe.min.js")
        assert member is not None
        return member.read().decode()


@pytest.fixture(scope="module")
def axe() -> str:
    """axe-core; skipped where it is not there and npm cannot fetch it."""
    try:
        return axe_source()
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"no {AXE}: {error}")


@contextmanager
def window(browser: Browser, width: int, scheme: str = "light") -> Iterator[Window]:
    """A page of this width; all of a browser have one profile and one window."""
    page = browser.contexts[0].new_page()
    page.set_viewport_size({"width": width, "height": _HEIGHT})
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    opened = Window(page)
    page.on("console", lambda message: opened.messages.append(message.text))
    page.on("pageerror", lambda error: opened.messages.append(str(error)))
    page.on("dialog", lambda dialog: opened.messages.append(f"dialog: {dialog.message}"))
    page.on("request", lambda request: opened.requests.append(request.url))
    try:
        yield opened
    finally:
        page.close()

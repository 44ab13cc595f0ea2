"""The desk and the live page of a crawl and of a fleet that run, in a real browser: axe-core, keyboard, no script.

``make bench-desk-tour`` (ARGS=FOLDER keeps screenshots there) opens every page at 1280 and 390 pixels, light and dark,
counts what axe-core finds, what is cut or wider than the window, and what the console says; then it pauses, resumes and
stops by keyboard alone, and adds a seed where scripts are off. Exit status 1 for a serious finding or a step that did
not do what it should. axe-core comes from npm, by its pin, into ``build/axe``.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from crawlerproject.config.chromium import find_chromium
from crawlerproject.desk.desk_views import VIEWS
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts
from crawlerproject.stores.operator_files.control import read_pauses
from tests.commands.browser import AXE, SERIOUS, Window, axe_source
from tests.web.ports import free_port
from tests.web.running import PROJECT, crawl_command, small_settings, synthetic_web
from tests.web.waiting import wait_until

WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
_SECONDS = 90.0
_SETTLED_MS = 600
_HEIGHT = 900
_MOST_TABS = 200
# Where the focus is, and whether it can be seen.
_FOCUS = """() => {
  const node = document.activeElement, style = getComputedStyle(node);
  const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  return [node.tagName, node.id || node.textContent.trim().slice(0, 40) || node.name || "", seen, node.getBoundingClientRect().width > 0];
}"""  # noqa: E501


class Tour:
    """What was found."""

    def __init__(self, browser: Browser, pictures: Path | None) -> None:
        self.faults: list[str] = []
        self.findings: Counter[str] = Counter()  # of axe-core, by impact
        self.pages = 0
        self._browser = browser
        self._pictures = pictures
        self._axe = axe_source()

    def check(self, good: object, what: str) -> None:
        """One step."""
        if not good:
            self.faults.append(what)

    @contextmanager
    def window(self, width: int, scheme: str, token: str, *, script: bool = True, axe: bool = True) -> Iterator[Window]:
        """A page that has the token; with ``axe`` its policy does not hold, since axe-core is put into it."""
        context = self._browser.new_context(
            viewport={"width": width, "height": _HEIGHT}, color_scheme="dark" if scheme == "dark" else "light",
            http_credentials={"username": "desk", "password": token}, java_script_enabled=script, bypass_csp=axe,
        )  # fmt: skip
        seen = Window(context.new_page())
        seen.page.on("console", lambda message: seen.messages.append(message.text))
        seen.page.on("pageerror", lambda error: seen.messages.append(str(error)))
        try:
            yield seen
        finally:
            context.close()

    def look(self, width: int, scheme: str, token: str, urls: dict[str, str]) -> None:
        """Every page in one window."""
        for axe in (False, True):  # with the policy for what it refuses, without it for axe-core
            with self.window(width, scheme, token, axe=axe) as seen:
                for name, url in urls.items():
                    seen.page.goto(url)
                    seen.page.wait_for_timeout(_SETTLED_MS)
                    where = f"{name} at {width} px, {scheme}"
                    if axe:
                        self._run_axe(seen.page, where)
                        continue
                    self.pages += 1
                    self.check(seen.width <= width, f"{where}: wider than the window ({seen.width})")
                    self.check(not (cut := seen.clipped()), f"{where}: cut: {cut}")
                    if self._pictures is not None:
                        file = re.sub(r"\W+", "-", f"{name}-{width}-{scheme}").strip("-")
                        seen.page.screenshot(path=self._pictures / f"{file}.png", full_page=True)
                self.check(not seen.messages, f"{width} px, {scheme}: the console says {seen.messages[:3]}")

    def _run_axe(self, page: Page, where: str) -> None:
        page.add_script_tag(content=self._axe)
        found: list[dict[str, Any]] = page.evaluate("async () => (await axe.run(document)).violations")
        for each in found:
            self.findings[each["impact"]] += 1
            nodes = [node["target"] for node in each["nodes"]][:3]
            text = f"{where}: axe-core, {each['impact']}: {each['id']} ({each['help']}) at {nodes}"
            print(text)
            self.check(each["impact"] not in SERIOUS, text)

    # --- by keyboard ------------------------------------------------------------------------------

    def by_keyboard(self, crawl: CrawlDir, home: str, token: str) -> None:
        """Reach everything by Tab, see where the focus is; pause, resume and stop without a pointer."""
        with self.window(1280, "light", token, axe=False) as seen:
            page = seen.page
            page.goto(home)
            stops = walk(page)
            want = page.evaluate(
                """() => [...document.querySelectorAll("a[href], button, input:not([type=hidden]), textarea, summary")]
                     .filter((node) => node.checkVisibility()).length"""
            )
            self.check(len(stops) >= want, f"keyboard: {len(stops)} stops of {want}")
            unseen = [stop for stop in stops if not stop[2]]
            self.check(not unseen, f"keyboard: no focus ring at {unseen}")
            press(page, home, "Pause the crawl", "a look by keyboard")
            self.check("a look by keyboard" in read_pauses(crawl).crawl, "keyboard: the crawl is not paused")
            press(page, home, "Resume the crawl")
            self.check(not read_pauses(crawl).crawl, "keyboard: the crawl is not resumed")
            self.check(page.locator("[role=status] .good").count(), "keyboard: what was done is not said")

    def stop_by_keyboard(self, crawl: CrawlDir, home: str, token: str) -> None:
        """Two presses: one opens, one orders."""
        with self.window(390, "light", token, axe=False) as seen:
            seen.page.goto(home)
            to(seen.page, "Stop the crawl")
            seen.page.keyboard.press("Enter")
            to(seen.page, "Stop it now")
            seen.page.keyboard.press("Enter")
            seen.page.wait_for_load_state()
            wait_until(lambda: read_facts(crawl.status).get("ended"), "the crawl ends", seconds=_SECONDS)

    def without_script(self, crawl: CrawlDir, home: str, token: str) -> None:
        """All is read, and a form works."""
        with self.window(390, "light", token, script=False, axe=False) as seen:
            for view, (title, _) in VIEWS.items():
                seen.page.goto(home + view)
                self.check(seen.page.locator("main").inner_text().strip(), f"without script: {title} is empty")
            seen.page.goto(home)
            seen.page.fill("#new-seeds", "http://added.test/")
            seen.page.get_by_text("Add seeds", exact=True).click()
            self.check("added.test" in seen.page.inner_text("main"), "without script: the seed is not added")
            seen.page.goto(f"{home}seeds")
            self.check("http://added.test/" in seen.page.inner_text("main"), "without script: the seed is not shown")


def walk(page: Page) -> list[list[Any]]:
    """Every place that Tab stops at, once."""
    stops: list[list[Any]] = []
    page.evaluate("document.getElementById('renew').checked = false")  # so that nothing is put in place meanwhile
    for _ in range(_MOST_TABS):
        page.keyboard.press("Tab")
        at = page.evaluate(_FOCUS)
        if at[0] == "BODY":
            break
        stops.append(at)
    return stops


def to(page: Page, text: str) -> None:
    """By Tab to what says ``text``."""
    for _ in range(_MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent.trim()") == text:
            return
    raise AssertionError(f"Tab never reaches {text!r}")


def press(page: Page, home: str, button: str, typed: str = "") -> None:
    """By keyboard to a button, what is typed into the field before it, and Enter."""
    page.goto(home)
    to(page, button)
    if typed:
        page.keyboard.press("Shift+Tab")
        page.keyboard.type(typed)
    page.keyboard.press("Enter")
    page.wait_for_load_state()
    page.locator("[role=status] code").first.wait_for()


@contextmanager
def desk(home: Path, crawls: str) -> Iterator[tuple[str, str]]:
    """``scrapy desk``: its address and its token."""
    command = [sys.executable, "-m", "scrapy", "desk", crawls, "--port", "0"]
    with subprocess.Popen(command, cwd=home, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address, token = process.stdout.readline().split()[0], process.stdout.readline().split()[1]
        try:
            yield address, token
        finally:
            process.send_signal(signal.SIGTERM)


def environment() -> dict[str, str]:
    """Ours, with the project on the path and without proxies."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return kept | {"PYTHONPATH": str(PROJECT), "SCRAPY_SETTINGS_MODULE": "crawlerproject.settings"}


@contextmanager
def crawls(home: Path, live_port: int) -> Iterator[None]:
    """A crawl that renders, and a fleet of two workers, both of the synthetic web and slow."""
    with ExitStack() as stack:
        web = stack.enter_context(synthetic_web(home / "web"))
        (home / "pace").write_text("plain2.test delay_seconds=600\n")  # so that they outlast the tour
        slow = {**small_settings(web), "PACE_PRESET": "fixed5", "HOST_PACE_FILE": str(home / "pace")}
        own = slow | {"WATCH_PORT": str(live_port), "RENDER": "auto", "RENDER_SCREENSHOT": "True"}
        alone = crawl_command(web.folder / "seeds.txt", home / "crawls" / "web", web.folder / "hosts", own)
        fleet = crawl_command(web.folder / "seeds.txt", home / "crawls" / "fleet", web.folder / "hosts", slow)
        at = fleet.index("crawl")
        fleet[at : at + 2] = ["fleet", "--workers", "2"]
        for name, command in (("web", alone), ("fleet", fleet)):
            log = stack.enter_context((home / f"{name}.log").open("wb"))
            process = subprocess.Popen(command, cwd=home, env=environment(), stdout=log, stderr=log)
            stack.callback(process.wait, _SECONDS)
            stack.callback(process.send_signal, signal.SIGTERM)
        yield


def main() -> int:
    """The tour."""
    program = find_chromium("")
    if program is None:
        print("There is no Chromium: make browser", file=sys.stderr)
        return 2
    pictures = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="desk-")))
        live_port = free_port()
        stack.enter_context(crawls(home, live_port))
        web, fleet = CrawlDir(home / "crawls" / "web"), CrawlDir(home / "crawls" / "fleet")
        address, token = stack.enter_context(desk(home, "crawls"))
        driver = stack.enter_context(sync_playwright())
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tour = Tour(browser, pictures)
        with tour.window(390, "light", token, axe=False) as seen:
            seen.page.goto(f"{address}crawl/web/")  # from now on it has rows for its charts
            wait_until(lambda: shot(seen.page, f"{address}crawl/web/pages"), "a picture is shown", seconds=_SECONDS)
        own = {f"crawl, {title}": f"{address}crawl/web/{view}" for view, (title, _) in VIEWS.items()}
        urls = {
            "list": address, **own, "why": f"{address}crawl/web/why?q=trap.test",
            "fleet": f"{address}crawl/fleet/", "fleet, log": f"{address}crawl/fleet/log?of=worker-1.log",
            "live page": f"http://127.0.0.1:{live_port}/",
        }  # fmt: skip
        for width in WIDTHS:
            for scheme in SCHEMES:
                tour.look(width, scheme, token, urls)
        tour.by_keyboard(web, f"{address}crawl/web/", token)
        tour.without_script(web, f"{address}crawl/web/", token)
        tour.stop_by_keyboard(web, f"{address}crawl/web/", token)
        tour.check(fleet.is_dir(), "there is no fleet")
        browser.close()
    counted = json.dumps(dict(tour.findings)) if tour.findings else "none"
    print(f"{tour.pages} pages; findings of {AXE}: {counted}; faults: {len(tour.faults)}")
    print(*tour.faults, sep="\n")
    return int(bool(tour.faults))


def shot(page: Page, url: str) -> bool:
    """Whether a page with a picture is among the newest."""
    page.goto(url)
    page.wait_for_timeout(_SETTLED_MS)
    return page.locator("img[alt]").count() > 0


if __name__ == "__main__":
    sys.exit(main())

"""Make the pictures of docs/pictures: a crawl's live page, its desk and its report in a real Chromium, wide and narrow.

``python scripts/pictures.py`` crawls the synthetic web for a minute and a half. Nothing in a picture is drawn by hand.
"""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.sync_api import Browser, ViewportSize, sync_playwright  # noqa: E402
from scrapy.utils.project import get_project_settings  # noqa: E402

from crawlerproject.config.chromium import find_chromium  # noqa: E402
from crawlerproject.desk.desk_views import Desk  # noqa: E402
from crawlerproject.desk.door import Door  # noqa: E402
from crawlerproject.stores.crawl_dir import CrawlDir, read_facts  # noqa: E402
from tests.web.ports import free_port  # noqa: E402
from tests.web.running import crawl_command, small_settings, synthetic_web  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
MOST_BYTES = 150_000
QUALITY = 0.9  # of WebP: text stays sharp
# Pages before the first picture: the charts have something to show, and the crawl still goes on.
ENOUGH_PAGES = 170
DEADLINE_SECONDS = 150.0
TOKEN = "of the pictures"
_WAIT_MS = 30_000
_SETTLED_MS = 2_500  # one more look of the page

_TO_WEBP = """async ([png, quality]) => {
  const image = new Image();
  image.src = "data:image/png;base64," + png;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width; canvas.height = image.height;
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", quality).split(",")[1];
}"""


class Picture(NamedTuple):
    """One window."""

    name: str
    width: int
    height: int
    scheme: str
    route: str = ""
    ready: str = "#table tbody tr"  # what is there when the page is drawn


LIVE = (
    Picture("live-1280", 1280, 1120, "light"),
    Picture("live-390", 390, 1500, "light"),
    Picture("host-1280", 1280, 900, "light", "#/host/etiquette.test:{port}", "#host table tbody tr"),
    Picture("why-390", 390, 520, "dark", "#/why/http:%2F%2Frules.test:{port}%2Fprivate%2F1", "#why .pill"),
)
DESK = (Picture("desk-1280", 1280, 1000, "light", "crawl/web/", ".charts svg"),)
REPORT = (Picture("report-1280", 1280, 1120, "light", ready="h2"),)


def main() -> int:
    """Crawl, look, write; 1 when a picture is too large to stand in the repository or the page complained."""
    program = find_chromium("")
    if program is None:
        print("There is no Chromium: make browser", file=sys.stderr)
        return 2
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pictures-") as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        good = crawl_and_look(browser, Path(folder))
        browser.close()
    sizes = {path.name: path.stat().st_size for path in sorted(PICTURES.glob("*.webp"))}
    for name, size in sizes.items():
        print(f"{name}: {size:,} bytes")
    return 0 if good and max(sizes.values()) <= MOST_BYTES else 1


def crawl_and_look(browser: Browser, home: Path) -> bool:
    """Pictures of the live page while a crawl runs, and of its report after."""
    port, crawl = free_port(), Path("crawls") / "web"
    with synthetic_web(home / "web") as web:
        settings = {**small_settings(web), "PACE_PRESET": "fixed5", "WATCH_PORT": str(port)}
        command = crawl_command(web.folder / "seeds.txt", crawl, web.folder / "hosts", settings)
        desk = Door(
            "127.0.0.1", 0, TOKEN, Desk(home / "crawls", get_project_settings(), no_order, lambda *_: []).answer
        )
        Thread(target=desk.serve_forever, daemon=True).start()
        with (home / "crawl.log").open("wb") as log:
            process = subprocess.Popen(command, cwd=home, env=environment(), stdout=log, stderr=log)
        try:
            wait_for_pages(home / crawl, process)
            good = not sum(take(browser, f"http://127.0.0.1:{port}/", each, web.port) for each in LIVE)
            good &= not sum(take(browser, desk.home, each, web.port) for each in DESK)
            process.send_signal(signal.SIGINT)
            process.wait(DEADLINE_SECONDS)
        finally:
            process.kill()
    report = [sys.executable, "-m", "scrapy", "report", "report.html", "-s", f"CRAWL_DIR={crawl}"]
    subprocess.run(report, cwd=home, env=environment(), check=True, stdout=subprocess.DEVNULL, timeout=DEADLINE_SECONDS)
    return good and not sum(take(browser, (home / "report.html").as_uri(), each, 0) for each in REPORT)


def environment() -> dict[str, str]:
    """Ours, with the project on the path and without proxies."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return kept | {"PYTHONPATH": str(ROOT), "SCRAPY_SETTINGS_MODULE": "crawlerproject.settings"}


def no_order(*_: Any) -> Any:
    """A picture orders nothing."""
    raise AssertionError("an order came")


def wait_for_pages(folder: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the crawl has enough to show."""
    until = time.monotonic() + DEADLINE_SECONDS
    while read_facts(CrawlDir(folder).status).get("progress", {}).get("pages", 0) < ENOUGH_PAGES:
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit("The crawl has too few pages to show.")
        time.sleep(0.2)


def take(browser: Browser, url: str, picture: Picture, port: int) -> int:
    """Write one picture; how much the page complained of."""
    complaints: list[str] = []
    size: ViewportSize = {"width": picture.width, "height": picture.height}
    page = browser.new_page(
        viewport=size, color_scheme="dark" if picture.scheme == "dark" else "light",
        http_credentials={"username": "desk", "password": TOKEN},
    )  # fmt: skip
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(url + picture.route.format(port=port))
    page.locator(picture.ready).first.wait_for(timeout=_WAIT_MS)
    page.wait_for_timeout(_SETTLED_MS)
    png = base64.b64encode(page.screenshot()).decode()
    page.close()
    plain = browser.new_page()
    webp = base64.b64decode(plain.evaluate(_TO_WEBP, [png, QUALITY]))
    plain.close()
    (PICTURES / f"{picture.name}.webp").write_bytes(webp)
    for complaint in complaints:
        print(f"{picture.name}: {complaint}", file=sys.stderr)
    return len(complaints)


if __name__ == "__main__":
    sys.exit(main())

"""``python -m benchmarks.replay_pixels --folder DIR``: whether an archived page looks as the live one did.

Crawls the Debian handbook (package debian-handbook) with REQUISITES=page over loopback, photographs pages of it in
Chromium, live and replayed by pywb, and counts the pixels that differ; the same for real pages of the web, whose
style sheets and images are made up here, a picture of its own for each address. Politeness is judged by the
server's log. With ``--none`` a second crawl without requisites shows what they are worth. The pictures stay in DIR.
"""

from __future__ import annotations

import argparse
import base64
import json
import mimetypes
import re
import shutil
import struct
import subprocess
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha1
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from crawlerproject.config.chromium import VIEWPORT, find_chromium
from crawlerproject.stores.logs.request_log import read_log
from tests.crawls.archive.pywb_server import pywb_of
from tests.hostile.arena import Arena, Asked, Crawled, answer, arena
from tests.web.running import one_pace

if TYPE_CHECKING:
    from playwright.sync_api import Page

HANDBOOK = Path("/usr/share/doc/debian-handbook/html/en-US")
HANDBOOK_HOST = "handbook.test"
HANDBOOK_PAGES = ("index.html", "apt.html", "network-infrastructure.html")
REAL_HOST = "real-page.test"
PACE_SECONDS = 0.02
SETTINGS = {
    **one_pace(PACE_SECONDS),
    "SITEMAPS": "False",
}
_CRAWL_SECONDS = 1200.0
_PAGE_MILLISECONDS = 60_000
# A page taller than this is photographed down to here: pictures in a browser are bounded.
_MOST_HEIGHT = 8_000
_ABSOLUTE = re.compile(rb"https?:(//[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)(?![A-Za-z0-9.:-])")
_RELATIVE_TO_SCHEME = re.compile(rb"""(["'(=, ])(//[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)(?=/)""")
# Counts, of two pictures, the pixels that differ in any channel, and the larger one's pixels.
_COMPARE = """async ([one, other]) => {
    const pixels = async (picture) => {
        const image = new Image();
        image.src = "data:image/png;base64," + picture;
        await image.decode();
        return image;
    };
    const [a, b] = [await pixels(one), await pixels(other)];
    const [width, height] = [Math.max(a.width, b.width), Math.max(a.height, b.height)];
    const data = [a, b].map((image) => {
        const canvas = new OffscreenCanvas(width, height);
        const context = canvas.getContext("2d");
        context.drawImage(image, 0, 0);
        return new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
    });
    let differ = 0;
    for (let at = 0; at < data[0].length; at++) differ += data[0][at] !== data[1][at];
    return [differ, width * height];
}"""


class Compared(NamedTuple):
    """One page, live and replayed."""

    name: str
    differ: int  # pixels
    pixels: int

    @property
    def share(self) -> float:
        """Of the pixels that differ."""
        return self.differ / self.pixels if self.pixels else 0.0


# --- the sites ----------------------------------------------------------------------------------


def handbook(asked: Asked) -> bytes | None:
    """The package's files."""
    file = (HANDBOOK / asked.path.partition("?")[0].lstrip("/")).resolve()
    file = file / "index.html" if file.is_dir() else file
    if HANDBOOK.resolve() not in file.parents or not file.is_file():
        return None
    return answer(file.read_bytes(), mime=mimetypes.guess_type(file.name)[0] or "application/octet-stream")


def picture(path: str, width: int = 120, height: int = 80) -> bytes:
    """A PNG of one colour, by the address."""
    colour = sha1(path.encode()).digest()[:3]

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + colour * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def made_up(asked: Asked) -> bytes | None:
    """What a real page asks of its hosts: a sheet that imports another and shows a picture, pictures, no scripts."""
    path = asked.path.partition("?")[0]
    if path == "/robots.txt":
        return None
    kind = mimetypes.guess_type(path)[0] or ""
    if kind == "text/css" or "css" in path:
        colour = sha1(asked.path.encode()).hexdigest()[:6]
        if path == "/imported.css":
            return answer(f"a {{ color: #{colour} }} h1, h2 {{ background: url(/heading.png) }}", mime="text/css")
        rules = (
            f'@import "/imported.css"; body {{ background: url("/paper-{colour}.png"); border: 4px solid #{colour} }}'
        )
        return answer(rules, mime="text/css")
    if kind in ("text/javascript", "application/javascript"):
        # Not empty: to an empty script pywb adds its own lines and leaves its length at 0, which ends the connection.
        return answer("/* nothing */", mime="text/javascript")
    if kind.startswith("font/"):
        return None
    return answer(picture(asked.path), mime="image/png")


class RealPages(NamedTuple):
    """Pages of the web as they are, their hosts moved to loopback."""

    bodies: dict[str, bytes]
    hosts: list[str]

    def site(self, asked: Asked) -> bytes | None:
        """The pages, and beside them what they ask of their own host."""
        body = self.bodies.get(asked.path)
        return answer(body, mime="text/html; charset=utf-8") if body is not None else made_up(asked)


def real_pages(archive: Path, count: int, port: int) -> RealPages:
    """The first ``count`` pages in the order of their digests that have style sheets and images."""
    bodies: dict[str, bytes] = {}
    hosts: set[str] = set()
    listed = subprocess.run(["tar", "--zstd", "-tf", archive], check=True, capture_output=True, text=True).stdout
    for name in sorted(line for line in listed.split() if line.endswith(".html")):
        if len(bodies) == count:
            break
        body = subprocess.run(["tar", "--zstd", "-xOf", archive, name], check=True, capture_output=True).stdout
        if body.count(b"<img") < 3 or b"stylesheet" not in body or b"</html>" not in body:
            continue
        body = _RELATIVE_TO_SCHEME.sub(rb"\1http:\2", body)
        hosts |= {found[1][2:].decode().lower() for found in _ABSOLUTE.finditer(body)}
        bodies[f"/{Path(name).name}"] = _ABSOLUTE.sub(rb"http:\1:%d" % port, body)
    return RealPages(bodies, sorted(hosts))


# --- the browser --------------------------------------------------------------------------------


@contextmanager
def browser(rules: str) -> Iterator[Page]:
    """A page in a Chromium that resolves names by ``rules`` alone."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=find_chromium(""),
            args=[f"--host-resolver-rules={rules}", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"],
        )
        try:
            yield chromium.new_page(viewport=VIEWPORT, reduced_motion="reduce")
        finally:
            chromium.close()


def photographed(page: Page, url: str, file: Path) -> int:
    """The page as it is once nothing more is loaded, in a window that shows all of it; its height."""
    page.set_viewport_size(VIEWPORT)
    _load(page, url)
    height = min(_MOST_HEIGHT, int(page.evaluate("document.documentElement.scrollHeight")))
    page.set_viewport_size({**VIEWPORT, "height": height})
    page.wait_for_load_state("networkidle", timeout=_PAGE_MILLISECONDS)
    page.screenshot(path=file, animations="disabled")
    return height


def photographed_replay(page: Page, url: str, height: int, file: Path) -> None:
    """The same of what pywb shows below its banner, in a window of the same size."""
    page.set_viewport_size(VIEWPORT)
    _load(page, url)
    frame = page.locator("#replay_iframe")
    frame.wait_for(timeout=_PAGE_MILLISECONDS)
    banner = round((frame.bounding_box() or {"y": 0})["y"])
    page.set_viewport_size({**VIEWPORT, "height": height + banner})
    page.wait_for_load_state("networkidle", timeout=_PAGE_MILLISECONDS)
    area = {"x": 0, "y": banner, "width": VIEWPORT["width"], "height": height}
    page.screenshot(path=file, animations="disabled", clip=area)  # type: ignore[arg-type]  # a TypedDict by its look


def _load(page: Page, url: str) -> None:
    page.goto(url, wait_until="load", timeout=_PAGE_MILLISECONDS)
    page.wait_for_load_state("networkidle", timeout=_PAGE_MILLISECONDS)
    page.evaluate("document.fonts.ready.then(() => true)")


def compared(page: Page, name: str, live: Path, replayed: Path) -> Compared:
    """Pixel by pixel, in the browser itself."""
    page.goto("about:blank")
    both = [base64.b64encode(file.read_bytes()).decode() for file in (live, replayed)]
    differ, pixels = page.evaluate(_COMPARE, both)
    return Compared(name, differ, pixels)


# --- a site, its crawl, its replay --------------------------------------------------------------


def of_site(
    web: Arena, folder: Path, host: str, paths: Sequence[str], crawls: dict[str, Crawled]
) -> dict[str, list[Compared]]:
    """Each of the pages live, then as each crawl has it; by the crawl's name. Live is over before the replay begins."""
    lines = (line.split() for line in (web.folder / "hosts").read_text().splitlines())
    rules = ", ".join([f"MAP {name} {address}" for address, name in lines])
    with browser(f"{rules}, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1") as page:
        heights = [photographed(page, web.url(host, path), _picture_file(folder, path, "live")) for path in paths]
    found: dict[str, list[Compared]] = {}
    for name, crawl in crawls.items():
        place = folder / f"pywb-{name}"
        place.mkdir(exist_ok=True)
        with pywb_of(crawl.folder, place) as (address, port), browser("MAP * ~NOTFOUND, EXCLUDE 127.0.0.1") as page:
            found[name] = []
            for path, height in zip(paths, heights, strict=True):
                live, replayed = (_picture_file(folder, path, what) for what in ("live", name))
                photographed_replay(page, f"http://{address}:{port}/crawl/{web.url(host, path)}", height, replayed)
                found[name].append(compared(page, path, live, replayed))
    return found


def _picture_file(folder: Path, path: str, what: str) -> Path:
    return folder / f"{Path(path).stem or 'front'}-{what}.png"


def politeness(web: Arena) -> tuple[int, float]:
    """Requests of the crawl, and the shortest pause that any host had after an answer, by the servers' log."""
    shortest = min(
        (
            after.start - before.end
            for host in {visit.host for visit in web.visits}
            for before, after in pairwise(web.of(host, robots=True))
        ),
        default=0.0,
    )
    return len(web.visits), shortest


def crawled(web: Arena, seeds: Sequence[str], requisites: str, settings: dict[str, str] | None = None) -> Crawled:
    """One crawl of the seeds' hosts; says what it asked for."""
    web.visits.clear()
    wanted = {**SETTINGS, "REQUISITES": requisites, **(settings or {})}
    crawl = web.crawl(*seeds, settings=wanted, name=f"crawl-{requisites}", scope="host", seconds=_CRAWL_SECONDS)
    requests, shortest = politeness(web)
    lines = list(read_log(crawl.folder / "log"))
    needed = sum(str(line["hop"]).rstrip("R").endswith("E") for line in lines)
    pages = json.loads((crawl.folder / "status.json").read_text())["totals"]["pages"]
    repeated = sum(count - 1 for count in Counter(line["url"] for line in lines).values())
    print(
        f"REQUISITES={requisites}: {pages} pages, {needed} requisites, {requests} requests, "
        f"{repeated} asked for again, shortest pause {shortest * 1000:.1f} ms for {PACE_SECONDS * 1000:.0f} promised, "
        f"{crawl.spent.cpu_seconds:.1f} CPU s"
    )
    return crawl


def report(found: dict[str, list[Compared]]) -> None:
    """Print a line for each page."""
    for name, pages in found.items():
        for one in pages:
            print(f"  {one.name:<40} {name:>12}: {one.differ:>9,} of {one.pixels:,} pixels differ ({one.share:.3%})")


def main() -> None:
    """Parse the arguments, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--real", type=Path, help="real-pages.tar.zst: pages of the web, a file each")
    parser.add_argument("--pages", type=int, default=5, help="how many of them")
    parser.add_argument("--none", action="store_true", help="also without requisites")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    modes = ["page", "none"] if options.none else ["page"]
    print("The Debian handbook")
    with arena(options.folder / "handbook") as web:
        seed = web.site(HANDBOOK_HOST, handbook)
        crawls = {mode: crawled(web, [seed], mode) for mode in modes}
        paths = [f"/{name}" for name in HANDBOOK_PAGES]
        report(of_site(web, options.folder / "handbook", HANDBOOK_HOST, paths, crawls))
    if options.real is None:
        return
    print("Real pages")
    with arena(options.folder / "real") as web:
        pages = real_pages(options.real, options.pages, web.port)
        web.site(REAL_HOST, pages.site)
        for host in pages.hosts:
            web.site(host, made_up)
        seeds = [web.url(REAL_HOST, path) for path in pages.bodies]
        crawls = {mode: crawled(web, seeds, mode, {"SCOPE_MAX_DEPTH": "0"}) for mode in modes}
        report(of_site(web, options.folder / "real", REAL_HOST, list(pages.bodies), crawls))


if __name__ == "__main__":
    main()

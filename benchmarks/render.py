"""``make bench-render``: script-built pages through our browser, beside a new context for each page.

A synthetic web of ``--hosts`` hosts with ten script-built pages each. First a crawl of ours with a browser (ours: a
page reused, scripts shared, everything by our fetch path), with the memory of all its processes once a second; the
same again with the browser killed in the middle; then the usual way with Playwright alone: a new context for every
page, the network open, ``networkidle``. Both with ``--in-flight`` pages at once.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from playwright.async_api import Browser, async_playwright

from crawlerproject.config.chromium import VIEWPORT, find_chromium
from crawlerproject.stores.logs.request_log import read_log
from tests.web.judge import read_visits
from tests.web.running import RunningWeb, crawl_command, small_settings, start, synthetic_web

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_SECONDS = 1.0


class Family(NamedTuple):
    """What a process and all below it have used: CPU so far, memory now."""

    cpu_seconds: float
    private_bytes: int
    browsers: tuple[int, ...]  # pids


def family(root: int) -> Family:
    """Look at ``root`` and its descendants by /proc."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stats[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
    found = {root}
    while more := {pid for pid, fields in stats.items() if int(fields[1]) in found} - found:
        found |= more
    cpu, memory, browsers = 0.0, 0, []
    for pid in found & stats.keys():
        cpu += sum(int(field) for field in stats[pid][11:15]) / _TICKS  # own and of children that have ended
        try:
            sizes = Path(f"/proc/{pid}/statm").read_text().split()
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        memory += (int(sizes[1]) - int(sizes[2])) * _PAGE_BYTES
        if b"chrom" in command.partition(b"\0")[0]:
            browsers.append(pid)
    return Family(cpu, memory, tuple(browsers))


_HASTE = {"PACE_MIN_SECONDS": "0.05", "PACE_IP_SECONDS": "0.05", "PACE_START_SECONDS": "0.05"}


def crawl(web: RunningWeb, folder: Path, in_flight: int, pages: int, *, kill: bool, preset: str = "") -> None:
    """One crawl of ours, in haste unless a pace is given; prints what it cost."""
    pace = small_settings(web, preset) | {"FRONTIER_MAX_REST_SECONDS": "60"} if preset else small_settings(web) | _HASTE
    settings = {**pace, "RENDER": "auto", "RENDER_MAX_IN_FLIGHT": str(in_flight)}
    log = folder.with_suffix(".log")
    curve, seen, killed, began = list[int](), Family(0.0, 0, ()), 0, time.monotonic()
    already = len(read_visits(web.folder / "server.jsonl"))
    with log.open("wb") as output:
        process = start(crawl_command(web.folder / "seeds.txt", folder, web.folder / "hosts", settings), output)
        while process.poll() is None:
            now = family(process.pid)
            seen = max(seen, now)  # the most: what the browser has used is gone with it
            curve += [now.private_bytes] if now.browsers else []
            if kill and not killed and _rendered(folder) >= pages // 2:
                killed = len(now.browsers)
                for pid in now.browsers:
                    with contextlib.suppress(ProcessLookupError):  # gone with its parent
                        os.kill(pid, signal.SIGKILL)
            time.sleep(_LOOK_SECONDS)
    seconds = time.monotonic() - began
    rows = [row for row in read_log(folder / "log") if row["rendered"]]
    done = [str(row["url"]) for row in rows if row["reason"] == "rendered"]
    visits = len(read_visits(web.folder / "server.jsonl")) - already
    name = f"ours, {killed} browser processes killed in the middle" if kill else "ours"
    print(f"{name}: {len(set(done))} of {pages} pages rendered, {len(done) - len(set(done))} twice, in {seconds:.0f} s")
    span = max(str(row["end"]) for row in rows), min(str(row["time"]) for row in rows)
    short = sum(row["reason"] == "render-pace" for row in read_log(folder / "log"))
    print(f"    {short} files that pages did without for their hosts' pace")
    print(f"    first to last render: {span[1][11:19]} to {span[0][11:19]}, {visits} requests to the servers")
    print(f"    {60 * len(set(done)) / seconds:.0f} pages a minute, {seen.cpu_seconds / pages:.2f} CPU seconds a page")
    quarter = max(1, len(curve) // 4)
    means = [sum(part) / len(part) / 1e6 for part in _parts(curve, quarter)]
    print(f"    memory of all processes, MB by quarter of the run: {', '.join(f'{mean:.0f}' for mean in means)}")


def _parts(curve: list[int], size: int) -> Iterator[list[int]]:
    for at in range(0, size * 4, size):
        yield curve[at : at + size] or [0]


def _rendered(folder: Path) -> int:
    return sum(path.read_bytes().count(b'"reason":"rendered"') for path in (folder / "log").glob("*.jsonl"))


async def baseline(web: RunningWeb, pages: list[str], in_flight: int) -> None:
    """Playwright alone: a new context and page for every address."""
    began, before = time.monotonic(), family(os.getpid()).cpu_seconds
    curve: list[int] = []
    queue = list(reversed(pages))
    rules = "--host-resolver-rules=" + ",".join(
        f"MAP {line.split()[1]} {line.split()[0]}" for line in (web.folder / "hosts").read_text().splitlines()
    )

    async def work(browser: Browser) -> None:
        while queue:
            url = queue.pop()
            context = await browser.new_context(viewport=VIEWPORT)
            page = await context.new_page()
            await page.goto(url, wait_until="networkidle")
            assert "built" in await page.content()
            await context.close()
            curve.append(family(os.getpid()).private_bytes)

    async with async_playwright() as playwright:
        path = find_chromium("")
        browser = await playwright.chromium.launch(executable_path=path, args=["--no-sandbox", rules])
        await asyncio.gather(*(work(browser) for _ in range(in_flight)))
        cpu = family(os.getpid()).cpu_seconds - before
        await browser.close()
    seconds = time.monotonic() - began
    print(f"new context for each page: {len(pages)} pages in {seconds:.0f} s")
    print(f"    {60 * len(pages) / seconds:.0f} pages a minute, {cpu / len(pages):.2f} CPU seconds a page")
    means = [sum(part) / len(part) / 1e6 for part in _parts(curve, max(1, len(curve) // 4))]
    print(f"    memory of all processes, MB by quarter of the run: {', '.join(f'{mean:.0f}' for mean in means)}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.render", description=__doc__)
    parser.add_argument("--hosts", type=int, default=20, help="ten pages each")
    parser.add_argument("--in-flight", type=int, default=2)
    parser.add_argument("--preset", default="", help="only one crawl, at this PACE_PRESET")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with synthetic_web(folder / "web", "--profile", "many-apps", "--hosts", str(given.hosts)) as web:
            pages = (web.folder / "seeds.txt").read_text().split()
            if given.preset:
                crawl(web, folder / "ours", given.in_flight, len(pages), kill=False, preset=given.preset)
                return
            crawl(web, folder / "ours", given.in_flight, len(pages), kill=False)
            crawl(web, folder / "killed", given.in_flight, len(pages), kill=True)
            asyncio.run(baseline(web, pages, given.in_flight))


if __name__ == "__main__":
    try:
        main()
    except subprocess.SubprocessError as error:
        raise SystemExit(str(error)) from error

"""``make bench-triage ARGS="--pages FOLDER"``: which pages triage sends to the browser, and which shells it misses.

Ordinary pages are every file below the ``--pages`` folders (default: what is installed of Debian's packages
debian-handbook, postgresql-doc-15, linux-doc-6.1 and python3.11-doc); shells are those of tests/web/shells and of
``--shells``, a folder that ``python -m benchmarks.app_shells.build`` filled.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from crawlerproject.rules.rendering.thin_pages import RenderNeed, Triage
from tests.web.shells import shells
from tests.web.unread_pages import triage

MANUALS = (
    "/usr/share/doc/debian-handbook/html",
    "/usr/share/doc/postgresql-doc-15/html",
    "/usr/share/doc/linux-doc-6.1/html",
    "/usr/share/doc/python3.11-doc/html",
)
_SHOWN = 10


def judge(name: str, pages: Iterable[tuple[str, bytes]], wrong: RenderNeed) -> Counter[RenderNeed]:
    """Print what triage says of ``pages``, and those that it judges ``wrong``; the count of each verdict."""
    verdicts: Counter[RenderNeed] = Counter()
    odd: list[tuple[str, Triage]] = []
    seconds = 0.0
    for title, body in pages:
        began = time.process_time()
        found = triage(body, "text/html; charset=utf-8")
        seconds += time.process_time() - began
        verdicts[found.verdict] += 1
        if found.verdict is wrong or (found.verdict is RenderNeed.UNSURE):
            odd.append((title, found))
    total = verdicts.total()
    counts = ", ".join(f"{verdict} {verdicts[verdict]}" for verdict in RenderNeed)
    print(f"{name}: {total} pages, {counts}, {seconds / max(1, total) * 1000:.2f} ms a page")
    for title, found in odd[:_SHOWN]:
        print(f"    {title}: {found}")
    return verdicts


def files(folder: Path) -> Iterable[tuple[str, bytes]]:
    """Every HTML file of a folder."""
    for path in sorted(folder.rglob("*.html")):
        yield path.name, path.read_bytes()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.triage", description=__doc__)
    parser.add_argument("--pages", type=Path, action="append", default=[], help="folder of ordinary pages, repeatable")
    parser.add_argument("--shells", type=Path, help="folder of built shells")
    given = parser.parse_args()
    ordinary: Counter[RenderNeed] = Counter()
    for folder in [*given.pages, *(Path(name) for name in MANUALS if Path(name).is_dir())]:
        ordinary += judge(str(folder), files(folder), RenderNeed.RENDER)
    found = judge("shells", [(name, html.encode()) for name, html in shells(given.shells).items()], RenderNeed.PLAIN)
    for name, counted in (
        ("render", {RenderNeed.RENDER}),
        ("render or unsure", {RenderNeed.RENDER, RenderNeed.UNSURE}),
    ):
        wrong, right = (sum(each[verdict] for verdict in counted) for each in (ordinary, found))
        print(
            f"{name}: precision {right / max(1, right + wrong):.4f}, recall {right / max(1, found.total()):.4f}, "
            f"{wrong / max(1, ordinary.total()):.3%} of {ordinary.total()} ordinary pages"
        )


if __name__ == "__main__":
    main()

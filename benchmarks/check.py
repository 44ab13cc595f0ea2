"""``python -m benchmarks.check [--write]``: has a page become dearer? Instructions, counted by Valgrind.

Two crawls of the same real pages, a short one and a longer one: what the longer one executes more, divided by the pages
that it has more, is what a page costs; what is left of the short one is the start. Counts of the same program differ by
some tenths of a percent (the event loop turns a little more or less often), so more than three are a change. The stored
figures are of one interpreter and one kind of processor; ``--write`` stores yours.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.real_pages.site import RealSite, install, nginx
from benchmarks.side_by_side.cases import small_pages
from tests.web.running import PROJECT, crawl_command, start

HOSTS = 8
FEW, MANY = 2, 25  # pages of each host
MOST_DEARER = 0.03  # far more than two counts of the same program differ by
FIGURES = Path(__file__).with_suffix(".json")
_VALGRIND = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
_COUNTED = re.compile(r"I +refs: +([\d,]+)")
_PACE = {f"PACE_{name}_SECONDS": "0.02" for name in ("MIN", "START", "IP")}


def counted(site: RealSite, pages_per_host: int) -> tuple[int, int]:
    """(instructions, pages) of one crawl."""
    folder = site.folder / f"crawl-{pages_per_host}"
    shutil.rmtree(folder, ignore_errors=True)
    settings = {"PACE_PRESET": "mirror", "RENDER": "never", "LOG_LEVEL": "WARNING", **_PACE}
    settings["SCOPE_MAX_URLS_PER_HOST"] = str(pages_per_host)
    crawl = crawl_command(site.folder / "few.txt", folder, site.folder / "hosts", settings, scope="host")
    os.environ["PYTHONHASHSEED"] = "0"
    output = site.folder / "valgrind.log"
    with output.open("wb") as text:
        status = start([*_VALGRIND, *crawl], text).wait()
    found = _COUNTED.search(output.read_text())
    if status or found is None:
        sys.exit(f"the crawl ended with status {status}:\n{output.read_text()[-2000:]}")
    pages = sum(file.read_bytes().count(b"\n") for file in (folder / "log").glob("requests-*.jsonl"))
    return int(found[1].replace(",", "")), pages


def interpreter() -> str:
    """What the counts depend on besides the code."""
    return f"{platform.python_implementation()} {platform.python_version()} {platform.python_compiler()}"


def measure() -> dict[str, int]:
    """Instructions a page and a start."""
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        Path(scratch).chmod(0o755)  # nginx may read it as another user
        site = small_pages(Path(scratch) / "a").site
        (site.folder / "few.txt").write_text("\n".join(site.seeds[:HOSTS]))
        with nginx(site):
            counted(site, FEW)  # compiles what is not compiled yet
            short, few = counted(site, FEW)
            whole, many = counted(site, MANY)
    a_page = (whole - short) // (many - few)
    return {"a_page": a_page, "a_start": short - few * a_page}


def main() -> None:
    """Count, compare, say."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the figures of this interpreter")
    given = parser.parse_args()
    install()
    if shutil.which("valgrind") is None:
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", "valgrind"], check=True)
    os.chdir(PROJECT)
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    known, now = figures.get(interpreter()), measure()
    if given.write:
        FIGURES.write_text(json.dumps({**figures, interpreter(): now}, indent=1) + "\n")
    dearer = []
    for what, count in now.items():
        change = f"{count / known[what] - 1:+.1%}" if known else "no figure of this interpreter: --write stores it"
        print(f"{what.replace('_', ' '):8} {count / 1e6:9.2f} million instructions  {change}")
        if known and count > known[what] * (1 + MOST_DEARER):
            dearer.append(what.replace("_", " "))
    if dearer and not given.write:
        sys.exit(f"dearer than what is stored: {', '.join(dearer)}")


if __name__ == "__main__":
    main()

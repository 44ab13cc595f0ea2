"""``python -m benchmarks.check [--write] [--libraries]``: has a page become dearer? Instructions, counted by Valgrind.

Two crawls of the same real pages, a short one and a longer one: what the longer one executes more, divided by the pages
that it has more, is what a page costs; what is left of the short one is the start. A broad page is one of
``benchmarks.broad``: other text on each, and most of its 27 links new. Counts of the same program differ by
some tenths of a percent (the event loop turns a little more or less often), so more than three are a change. Stored
figures are of one interpreter and one kind of processor; ``--write`` stores yours. ``--libraries`` tells what counts
are made of: the interpreter, and each C library by itself.
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
from collections import Counter
from pathlib import Path

from benchmarks.broad.__main__ import web
from benchmarks.real_pages.site import install, nginx
from benchmarks.side_by_side.cases import small_pages
from crawlerproject.settings import EXTENSIONS, OURS
from tests.web.running import PROJECT, crawl_command, start

HOSTS = 40  # all that the manual is dealt to: what happens once in a crawl falls on 360 pages
FEW, MANY = 2, 11  # pages of each host
BROAD_HOSTS, BROAD_FEW, BROAD_MANY = 40, 120, 520  # pages of all
MOST_DEARER = 0.03  # far more than two counts of the same program differ by
FIGURES = Path(__file__).with_suffix(".json")
WHOLE = "whole"
# The process that makes the index counts too.
_COUNT = ["--trace-children=yes", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
_COUNTED = re.compile(r"I +refs: +([\d,]+)")
# What rings by the clock: under Valgrind, which takes fifty times as long, its turns would count as the pages'. So
# commits are as many pages apart as they are without it.
_SLOWER = 50
_TUNING = "crawlerproject.extensions.process_tuning"
_BY_THE_CLOCK = dict.fromkeys(
    (f"{_TUNING}.LoopLatency", f"{_TUNING}.LargePages", "crawlerproject.extensions.status_file.StatusFile")
)
_PACE = {f"PACE_{name}_SECONDS": "0.02" for name in ("MIN", "START", "IP")}
_NAMED = re.compile(r"c?ob=\((\d+)\)(?: (.*))?")  # callgrind names an object once, then by number
_LEAST_SHOWN = 0.005  # of all


def crawled(place: Path, seeds: str, pages: dict[str, str], by_library: bool) -> tuple[Counter[str], int]:
    """(instructions by library or as a whole, pages) of one crawl; ``place`` has its seeds and ``hosts``.

    ``pages``: the setting, or the argument of the spider, that says how many there are.
    """
    folder, output, counts = place / "crawl", place / "valgrind.log", place / "callgrind.out"
    for old in place.glob(f"{counts.name}.*"):
        old.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    settings = {"PACE_PRESET": "mirror", "RENDER": "never", "LOG_LEVEL": "WARNING", **_PACE}
    settings["EXTENSIONS"] = json.dumps(EXTENSIONS | _BY_THE_CLOCK)
    settings |= {name: str(OURS[name] * _SLOWER) for name in ("COMMIT_SECONDS", "PROGRESS_LOG_SECONDS")}
    crawl = crawl_command(place / seeds, folder, place / "hosts", settings, scope="host")
    crawl += [part for name, value in pages.items() for part in ("-s" if name.isupper() else "-a", f"{name}={value}")]
    crawl[crawl.index("scrapy")] = "crawlerproject"  # ``polite-crawler``, whose start imports less
    tool = ["--trace-children=yes", "--tool=callgrind", f"--callgrind-out-file={counts}.%p"] if by_library else _COUNT
    os.environ["PYTHONHASHSEED"] = "0"
    with output.open("wb") as text:
        status = start(["valgrind", *tool, *crawl], text).wait()
    found = [int(count.replace(",", "")) for count in _COUNTED.findall(output.read_text())]
    if status or not found:
        sys.exit(f"the crawl ended with status {status}:\n{output.read_text()[-2000:]}")
    done = sum(file.read_bytes().count(b"\n") for file in (folder / "log").glob("requests-*.jsonl"))
    if by_library:
        return sum(map(libraries, place.glob(f"{counts.name}.*")), Counter()), done
    return Counter({WHOLE: sum(found)}), done


def libraries(counts: Path) -> Counter[str]:
    """Instructions by the file that they are in, without those of what they call."""
    names: dict[str, str] = {}
    found: Counter[str] = Counter()
    current, called = "", False
    with counts.open(errors="replace") as lines:
        for line in lines:
            if named := _NAMED.match(line):
                names.setdefault(named[1], (named[2] or "").strip())
                if line.startswith("ob="):
                    current = names[named[1]]
            elif line.startswith("calls="):
                called = True
            elif line[0] in "0123456789+-*":
                if not called:
                    found[Path(current).name.partition(".")[0]] += int(line.split()[1])
                called = False
    return found


def interpreter() -> str:
    """What the counts depend on besides the code."""
    return f"{platform.python_implementation()} {platform.python_version()} {platform.python_compiler()}"


def measure(by_library: bool) -> tuple[Counter[str], Counter[str]]:
    """Instructions a page and a start."""
    with tempfile.TemporaryDirectory(prefix="check-") as scratch:
        site = small_pages(Path(scratch) / "a").site
        (site.folder / "few.txt").write_text("\n".join(site.seeds[:HOSTS]))
        ways = [{"SCOPE_MAX_URLS_PER_HOST": str(each)} for each in (FEW, MANY)]
        with nginx(site):
            crawled(site.folder, "few.txt", ways[0], by_library=False)  # compiles what is not compiled yet
            short, few = crawled(site.folder, "few.txt", ways[0], by_library)
            whole, many = crawled(site.folder, "few.txt", ways[1], by_library)
    a_page = Counter({name: (whole[name] - short[name]) // (many - few) for name in whole})
    return a_page, Counter({name: short[name] - few * a_page[name] for name in short})


def broad_page() -> int:
    """Instructions a page of a broad crawl."""
    with tempfile.TemporaryDirectory(prefix="check-") as scratch, web(Path(scratch) / "b", BROAD_HOSTS, 27, 0.9):
        place = Path(scratch) / "b"
        (short, few), (whole, many) = [
            crawled(place, "seeds.txt", {"max_pages": str(each)}, by_library=False) for each in (BROAD_FEW, BROAD_MANY)
        ]
    return (whole[WHOLE] - short[WHOLE]) // (many - few)


def show_libraries(a_page: Counter[str], a_start: Counter[str]) -> None:
    """What both counts are made of."""
    print("million instructions\n   a page  a start")
    for name, count in a_page.most_common():
        if count > _LEAST_SHOWN * a_page.total():
            print(f"{count / 1e6:9.2f} {a_start[name] / 1e6:8.0f}  {name}")
    print(f"{a_page.total() / 1e6:9.2f} {a_start.total() / 1e6:8.0f}  all of it")


def compare(now: dict[str, int], *, store: bool) -> None:
    """Against what is stored for this interpreter; exits with 1 when it has become dearer."""
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    known = figures.get(interpreter())
    dearer = []
    for what, count in now.items():
        known_one = known.get(what) if known else None
        change = f"{count / known_one - 1:+.1%}" if known_one else "no figure of this interpreter: --write stores it"
        print(f"{what:12} {count / 1e6:9.2f} million instructions  {change}")
        if known_one and count > known_one * (1 + MOST_DEARER):
            dearer.append(what)
    if store:
        FIGURES.write_text(json.dumps({**figures, interpreter(): now}, indent=1) + "\n")
    elif dearer:
        sys.exit(f"dearer than what is stored: {', '.join(dearer)}")


def main() -> None:
    """Count, then say or compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=__doc__)
    parser.add_argument("--write", action="store_true", help="store the figures of this interpreter")
    parser.add_argument("--libraries", action="store_true", help="what they are made of, in two more minutes")
    given = parser.parse_args()
    install()
    if shutil.which("valgrind") is None:
        subprocess.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", "valgrind"], check=True)
    os.chdir(PROJECT)
    a_page, a_start = measure(given.libraries)
    if given.libraries:
        show_libraries(a_page, a_start)
    else:
        now = {"a page": a_page[WHOLE], "a start": a_start[WHOLE], "a broad page": broad_page()}
        compare(now, store=given.write)


if __name__ == "__main__":
    main()

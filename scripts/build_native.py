"""What ``make`` runs before a crawl: builds the native page reader, or says in one line why there is none.

A crawl never waits for it in vain and never fails for it: the exit status is 0, and pages are read in Python.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NATIVE = ROOT / "crawlerproject" / "native"
LOG = Path("build") / "native.log"
# docs/performance.md, "Side by side": 3.83 against 3.09 ms, 7.96 against 6.36.
COST = "pages are read in Python, which costs about a quarter more CPU a page"


def main() -> int:
    """Build, unless what is there was made of these sources."""
    from crawlerproject.native.build import NotBuilt, build, file_name
    from crawlerproject.native.sources import ENTRY, digest

    target = NATIVE / file_name()
    if not (NATIVE / ENTRY).is_file() or fits(target, digest(NATIVE)):
        return 0
    if missing := packages():
        install = f"apt-get install {' '.join(missing)}, then make again"
        say(f"The native page reader is missing: {COST}. To get it: {install}")
        return 0
    print("Building the native page reader (seconds, the first time only)", flush=True)
    try:
        build(NATIVE, target)
    except NotBuilt as error:
        log = ROOT / LOG
        log.parent.mkdir(exist_ok=True)
        log.write_text(f"{error}\n")
        target.unlink(missing_ok=True)  # of other sources: the crawl would warn of it a second time
        say(f"The native page reader could not be built (see {LOG}): {COST}.")
    return 0


def fits(target: Path, digest: str) -> bool:
    """Whether an extension was built of sources with this digest: it holds it as a text."""
    return target.is_file() and digest.encode() in target.read_bytes()


def packages() -> list[str]:
    """Debian's packages that are missing for a build."""
    from crawlerproject.native.build import compiler, headers

    python = f"python{sys.version_info.major}.{sys.version_info.minor}-dev"
    return [*([] if compiler() else ["gcc", "libc6-dev"]), *([] if headers() else [python])]


def say(line: str) -> None:
    """Where a pipe that reads the crawl's output does not get it."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())

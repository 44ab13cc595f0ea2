"""What ``make`` runs before a crawl: builds the native page reader, or says in one line why there is none.

A crawl never waits for it in vain and never fails for it: the exit status is 0, and pages are read in Python.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOG = Path("build") / "native.log"
# docs/performance.md, "Side by side": 3.83 against 3.09 ms, 7.96 against 6.36.
COST = "pages are read in Python, which costs about a quarter more CPU a page"


def main() -> int:
    """Build, unless what is there was built from these sources."""
    from crawlerproject.native import HERE, digest
    from crawlerproject.native.build import NotBuilt, NotFetched, build, file_name, has_lexbor

    target, ours = HERE / file_name(), digest()
    if not ours or (target.is_file() and ours.encode() in target.read_bytes()):  # it holds the digest as a text
        return 0
    if missing := packages():
        install = f"apt-get install {' '.join(missing)}, then make again"
        say(f"The native page reader is missing: {COST}. To get it: {install}")
        return 0
    first = "Building" if has_lexbor() else "Fetching lexbor and building"
    print(f"{first} the native page reader (seconds, the first time only)", flush=True)
    try:
        build(target)
    except NotBuilt as error:
        log = ROOT / LOG
        log.parent.mkdir(exist_ok=True)
        log.write_text(f"{error}\n")
        target.unlink(missing_ok=True)  # of other sources: the crawl would warn of it a second time
        failed = "lacks lexbor, which could not be fetched" if isinstance(error, NotFetched) else "could not be built"
        say(f"The native page reader {failed} (see {LOG}): {COST}.")
    return 0


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

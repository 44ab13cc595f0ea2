"""Runs Scrapy's command line and writes down which files of the crawler are entered once the crawl has its first URL.

``python -m tests.crawls.entered FILE crawl web …``: FILE gets their paths below ``crawlerproject/``, one a line.
"""

from __future__ import annotations

import inspect
import sys
import threading
from pathlib import Path
from types import FrameType

from scrapy.cmdline import execute

PACKAGE = str(Path(__file__).resolve().parents[2] / "crawlerproject") + "/"
FIRST = "frontier/admission.py"


def main(path: str, arguments: list[str]) -> None:
    """Run ``scrapy ARGUMENTS``; its exit status is ours."""
    entered = dict[str, None]()

    def called(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # What has no optimised locals is the body of a module or class: an import.
        if event != "call" or not code.co_filename.startswith(PACKAGE) or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        name = code.co_filename.removeprefix(PACKAGE)
        if entered or name == FIRST:
            entered[name] = None

    sys.argv = ["scrapy", *arguments]
    threading.setprofile(called)
    sys.setprofile(called)
    try:
        execute()
    finally:
        sys.setprofile(None)
        Path(path).write_text("".join(f"{name}\n" for name in entered))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

"""Traces a crawl of a few pages: which files of the crawler one URL enters, and how many functions, how deep.

``python -m tests.crawls.entered [-v]`` prints the figures of such a crawl, and with ``-v`` each function.
``python -m tests.crawls.entered FILE crawl web …`` runs that command of Scrapy's, and writes what it saw to FILE.

Three ways are looked at: all of the crawl from its first URL on; of the first link that a page leads to, from its
discovery to the commit of its page; and within that from the making of its request to the end of its lease. Whatever
runs meanwhile counts, but for the extensions that work by a timer of their own (all but the commit loop), since how
often they do is chance. Depth is the number of our own functions on the stack.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from scrapy.cmdline import execute

from tests.hostile.arena import SETTINGS, arena
from tests.web.running import crawl_command
from tests.web.zygote import PROJECT, direct

PACKAGE = str(PROJECT / "crawlerproject") + "/"
CRAWL = "whole crawl"
FOUND = "found to committed"
REQUESTED = "requested to ended"
# Where they begin and end.
_FOUND = "frontier/admission.py:add"
_REQUESTED = "crawl/lease_requests.py:request"
_ENDED = "frontier/frontier.py:finish"
_OF_A_PAGE = tuple(f"extensions/{name}.py" for name in ("commit_loop", "crawl_task", "log_formatter"))
_COMMIT = ("crawl/commits.py:prepare", "frontier/frontier_state.py:apply", "crawl/commits.py:_answer")


class Way:
    """Everything of ours that was called between two moments."""

    def __init__(self) -> None:
        self.open = False
        self.calls = 0
        self.stack: list[CodeType] = []  # the deepest, the innermost first
        self.functions: dict[CodeType, int] = {}

    def called(self, code: CodeType, stack: list[CodeType]) -> None:
        """A function was entered."""
        self.calls += 1
        self.stack = max(self.stack, stack, key=len)
        self.functions[code] = self.functions.get(code, 0) + 1

    def seen(self) -> dict[str, Any]:
        """The figures, and the files in the order in which they were entered."""
        files = list(dict.fromkeys(_file(code) for code in self.functions))
        names = [f"{_file(code)}:{code.co_qualname} {count}" for code, count in self.functions.items()]
        figures = {"files": len(files), "functions": len(names), "calls": self.calls, "deepest": len(self.stack)}
        deepest = [f"{_file(code)}:{code.co_qualname}" for code in reversed(self.stack)]
        return {**figures, "entered": files, "called": names, "stack": deepest}


class Trace:
    """Follows one URL by the calls that it takes, for ``sys.setprofile``."""

    def __init__(self) -> None:
        self.ways = {CRAWL: Way(), FOUND: Way(), REQUESTED: Way()}
        self.url = ""
        self._left = list(_COMMIT)  # what is still to come of its commit, once its lease has ended
        self._ended = False

    def saw(self, frame: FrameType, event: str, _: object) -> None:
        """A function was entered or left, a coroutine resumed or suspended."""
        code = frame.f_code
        # What has no optimised locals is the body of a module or class: an import.
        if not code.co_filename.startswith(PACKAGE) or not code.co_flags & inspect.CO_OPTIMIZED:
            return
        where = f"{_file(code)}:{code.co_name}"
        if event == "call":
            self._entered(where, frame)
            ways = [way for way in self.ways.values() if way.open]
            stack = _stack(frame) if ways else []
            for way in ways if stack else ():
                way.called(code, stack)
        elif event == "return":
            self._left_function(where, frame)

    def _entered(self, where: str, frame: FrameType) -> None:
        if where == _FOUND and not self.url:
            self.ways[CRAWL].open = True
            links = [link for link in frame.f_locals["found"] if link.via]
            if links:
                self.url, self.ways[FOUND].open = links[0].address.url, True
        elif where == _REQUESTED and self._is_its(frame):
            self.ways[REQUESTED].open = True

    def _left_function(self, where: str, frame: FrameType) -> None:
        if where == _ENDED and self._is_its(frame):
            self.ways[REQUESTED].open, self._ended = False, True
        elif self._ended and self._left and where == self._left[0]:
            self._left.pop(0)
            self.ways[FOUND].open = bool(self._left)

    def _is_its(self, frame: FrameType) -> bool:
        return bool(self.url) and frame.f_locals["lease"].row.url == self.url


def traced(folder: Path) -> dict[str, dict[str, Any]]:
    """The ways of a page, in a crawl whose whole process is traced.

    Its six pages take longer than a commit: with fewer the crawl's end falls into the page's way, now and then.
    """
    seen, seeds = folder / "entered.json", folder / "seeds.txt"
    with arena(folder / "web") as web:
        seeds.write_text(web.innocent(pages=6) + "\n")
        command = crawl_command(seeds, folder / "crawl", web.folder / "hosts", SETTINGS | {"COMMIT_SECONDS": "0.1"})
        run = [sys.executable, "-m", "tests.crawls.entered", str(seen), *command[3:]]
        ended = subprocess.run(run, cwd=PROJECT, env=direct(), capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    ways: dict[str, dict[str, Any]] = json.loads(seen.read_text())
    return ways


def trace(path: str, arguments: list[str]) -> None:
    """Run ``scrapy ARGUMENTS``, traced; its exit status is ours."""
    following = Trace()
    sys.argv = ["scrapy", *arguments]
    threading.setprofile(following.saw)
    sys.setprofile(following.saw)
    try:
        execute()
    finally:
        sys.setprofile(None)
        Path(path).write_text(json.dumps({name: way.seen() for name, way in following.ways.items()}, indent=1))


def _file(code: CodeType) -> str:
    return code.co_filename.removeprefix(PACKAGE)


def _stack(frame: FrameType | None) -> list[CodeType]:
    """Our own functions on the stack, the innermost first; none below an extension's timer."""
    stack = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            stack.append(frame.f_code)
            name = _file(frame.f_code)
            if name.startswith("extensions/") and name not in _OF_A_PAGE:
                return []
        frame = frame.f_back
    return stack


def main() -> None:
    """Print the figures; with ``-v`` what was called, too."""
    with tempfile.TemporaryDirectory() as folder:
        ways = traced(Path(folder))
    for name, way in ways.items():
        print(name + ":", ", ".join(f"{way[figure]} {figure}" for figure in ("files", "functions", "calls", "deepest")))
        if "-v" in sys.argv:
            print(*(f"  {called}" for called in way["called"]), sep="\n")
            print(" at its deepest:", *(f"  {called}" for called in way["stack"]), sep="\n")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        trace(sys.argv[1], sys.argv[2:])
    else:
        main()

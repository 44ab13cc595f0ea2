"""Write the screens of docs/running.md: real crawls on a pseudo-terminal of 80 columns and 24 lines.

``python scripts/screens.py`` takes about a minute. What stands between the marks in that page is made
here, and only here.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pyte

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "running.md"
BEGIN, END = "<!-- screens: scripts/screens.py -->", "<!-- end of screens -->"
COLUMNS, LINES = 80, 24
PORT = 8090  # of the synthetic web: fixed, so that two runs differ in times only
DEADLINE_SECONDS = 120.0
_LOOK_SECONDS = 0.05

SETTINGS = (
    (ROOT / "scripts" / "demo_settings.py").read_text()
    + """
FETCH_CONNECT_TIMEOUT_SECONDS = 1
BACKOFF_MAX_SECONDS = 2
"""
)
_FULL_RESTS = "-s BACKOFF_MAX_SECONDS=86400"  # the default: rests as an operator meets them


class Scene(NamedTuple):
    """One screen: what is typed, when the picture is taken, and what the page says of it."""

    name: str
    options: str  # of scrapy crawl web
    text: str
    shows: Callable[[str], bool] | None = None  # of the screen as text; None: at the end of the crawl
    shown_options: str = ""  # as the page shows them, where others only stand in for a state of the machine
    in_page: bool = True


def scenes() -> list[Scene]:
    """In the order in which they are run; one goes on with what the one before left."""
    return [
        Scene(
            "First run",
            "-a seeds=seeds.txt",
            "The panel stands at the bottom, the log scrolls above it.",
            lambda screen: pages_on(screen) >= 60,
        ),
        Scene(
            "A seed that is refused, one that does not resolve",
            f"-a seeds=http://10.0.0.1/,http://example.invalid/ -s CRAWL_DIR=crawls/refused {_FULL_RESTS}",
            "Both are reported at once, with the reason and the setting. When nothing moves, the panel says why.",
            lambda screen: "again in" in panel_of(screen),
            "-a seeds=http://10.0.0.1/,http://example.invalid/",
        ),
        Scene(
            "Paused",
            "-a seeds=seeds.txt -s CRAWL_DIR=crawls/full -s DISK_MIN_FREE_BYTES=1000000000000000",
            "Here for want of room on the disk; it goes on by itself when there is some.",
            lambda screen: "PAUSED" in screen,
            in_page=False,
        ),
    ]


class Terminal:
    """A process on a pseudo-terminal, and what its screen shows."""

    def __init__(self, command: list[str], cwd: Path, environment: dict[str, str]) -> None:
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._fd, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)

    def text(self) -> str:
        """The screen, without blanks at the ends of lines and lines that are empty at its end."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def until(self, shows: Callable[[str], bool] | None) -> str:
        """The first screen that ``shows`` what is wanted; None: the last one. RuntimeError after DEADLINE_SECONDS."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline:
            going = self._read()
            text = self.text()
            if shows is not None and shows(text):
                return text
            if not going:
                if shows is None:
                    return text
                raise RuntimeError(f"the crawl ended without what was waited for:\n{text}")
        raise RuntimeError(f"it never came:\n{self.text()}")

    def _read(self) -> bool:
        """Feed the screen with what has come; False when nothing will come any more."""
        if select.select([self._fd], [], [], _LOOK_SECONDS)[0]:
            try:
                data = os.read(self._fd, 65536)
            except OSError:  # Linux: the other side is closed
                return False
            self._stream.feed(data)
            return bool(data)
        return True

    def close(self) -> None:
        """One Ctrl-C ends the crawl in good order."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.until(None)
        self.process.wait(DEADLINE_SECONDS)
        os.close(self._fd)


def pages_on(screen: str) -> int:
    """Pages that the panel counts."""
    found = re.search(r"([\d,]+) pages · ", screen)
    return int(found[1].replace(",", "")) if found else 0


def panel_of(screen: str) -> str:
    """What stands in the last panel on the screen."""
    lines = screen.splitlines()
    tops = [number for number, line in enumerate(lines) if line.startswith("╭")]
    return "\n".join(line.strip("│ ") for line in lines[tops[-1] + 1 :] if line.startswith("│")) if tops else ""


@contextmanager
def prepared(home: Path, port: int = PORT) -> Iterator[Path]:
    """A project in ``home`` and the synthetic web that it crawls; port 0 is any free one."""
    (home / "scrapy.cfg").write_text("[settings]\ndefault = demo_settings\n")
    (home / "demo_settings.py").write_text(SETTINGS)
    command = [sys.executable, "-m", "tests.web", "--port", str(port), "--folder", str(home)]
    web = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (home / "ready").exists():
            if web.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the synthetic web did not start")
            time.sleep(_LOOK_SECONDS)
        (home / "nevercrawl.txt").rename(home / "NeverCrawl.txt")
        yield home
    finally:
        web.terminate()
        web.wait()


def environment() -> dict[str, str]:
    """Ours, with the project on the path, a plain terminal and no proxies."""
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    kept = {name: value for name, value in kept.items() if name not in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")}
    return kept | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "LANG": "C.UTF-8"}


def take(scene: Scene, home: Path) -> str:
    """The screen of a scene in a project that is ``prepared``."""
    terminal = Terminal(
        [sys.executable, "-m", "scrapy", "crawl", "web", *shlex.split(scene.options)], home, environment()
    )
    try:
        return terminal.until(scene.shows)
    finally:
        terminal.close()


def section(scene: Scene, screen: str) -> str:
    """A scene as the page has it."""
    typed = f"$ scrapy crawl web {scene.shown_options or scene.options}"
    return f"**{scene.name}.** {scene.text}\n\n```\n{typed}\n{screen}\n```"


def with_screens(page: str, sections: list[str]) -> str:
    """The page with what stands between the marks replaced."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n" + "\n\n".join(sections) + f"\n\n{END}{after}"


def main() -> int:
    """Run every scene and write the page."""
    with tempfile.TemporaryDirectory(prefix="screens-") as folder, prepared(Path(folder)) as home:
        sections = [section(scene, take(scene, home)) for scene in scenes() if scene.in_page]
    PAGE.write_text(with_screens(PAGE.read_text("utf-8"), sections), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {len(sections)} screens")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())

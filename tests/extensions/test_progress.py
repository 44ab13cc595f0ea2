"""The progress extension: when it shows, what it shows, and that it gives the terminal back."""

import io
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from scrapy import Spider
from scrapy.exceptions import NotConfigured
from scrapy.utils.test import get_crawler

from crawlerproject.extensions import progress as module
from crawlerproject.extensions.progress import LiveDisplay, LogDisplay, ProgressExtension, scheduler_progress
from crawlerproject.inspection.crawl_progress import Progress
from crawlerproject.stores.crawl_dir import CrawlDir

NONE = Progress(0, 0, 0, 0, 0, 0, 0, 0, None, None, "")


class FakeLoop:
    """A looping call that never fires by itself."""

    def __init__(self) -> None:
        self.ticks: list[float] = []

    def start(self, interval: float, now: bool = True) -> None:
        self.ticks.append(interval)

    def stop(self) -> None:
        self.ticks.clear()


class FakeDisplay(LogDisplay):
    """Remembers what it was told."""

    def __init__(self) -> None:
        super().__init__(30.0)
        self.told: list[str] = []

    def start(self) -> None:
        self.told.append("start")

    def show(self, lines: list[str]) -> None:
        self.told.append(" · ".join(lines))

    def stop(self) -> None:
        self.told.append("stop")


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> FakeLoop:
    """The looping call that the extension gets."""
    fake = FakeLoop()
    monkeypatch.setattr(module, "create_looping_call", lambda tick: fake)
    return fake


def crawler(crawling: bool = True, **settings: Any) -> Any:
    """A crawler as the extension meets it."""
    made = get_crawler(Spider, {"PROGRESS_LOG_SECONDS": 30, **settings})
    made.crawling = crawling
    return made


def test_off_outside_a_crawl() -> None:
    """The shell and fetch have no crawl to show."""
    with pytest.raises(NotConfigured):
        ProgressExtension.from_crawler(crawler(crawling=False))


def test_off_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """PROGRESS_LOG_SECONDS=0 switches the log line off."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    with pytest.raises(NotConfigured):
        ProgressExtension.from_crawler(crawler(PROGRESS_LOG_SECONDS=0))


@pytest.mark.parametrize(
    ("terminal", "log_file", "kind"), [(True, "", LiveDisplay), (True, "x.log", LogDisplay), (False, "", LogDisplay)]
)
def test_a_panel_only_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, loop: FakeLoop, terminal: bool, log_file: str, kind: type
) -> None:
    """A terminal without LOG_FILE gets the panel, everything else the log line."""
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal, raising=False)
    extension = ProgressExtension.from_crawler(crawler(LOG_FILE=log_file))

    assert isinstance(extension._display, kind)


def test_shows_from_open_to_close(loop: FakeLoop) -> None:
    """Opens the display, ticks, shows the end, closes."""
    display = FakeDisplay()
    extension = ProgressExtension(lambda: NONE._replace(pages=7), display, 30.0)
    extension.spider_opened(Spider("x"))

    assert loop.ticks == [30.0]
    extension.spider_closed(Spider("x"))

    assert loop.ticks == []
    assert display.told[0] == "start"
    assert display.told[1].startswith("7 pages")
    assert display.told[2:] == ["stop"]


def test_silent_with_a_scheduler_that_tells_nothing(loop: FakeLoop) -> None:
    """Scrapy's own scheduler has no progress: nothing is shown, nothing fails."""
    display = FakeDisplay()
    extension = ProgressExtension(lambda: None, display, 30.0)
    extension.spider_opened(Spider("x"))
    extension.tick()
    extension.spider_closed(Spider("x"))

    assert display.told == []


def test_the_rate_is_over_the_window(loop: FakeLoop) -> None:
    """Old looks leave the window, so that the rate is of now and not of the start."""
    extension = ProgressExtension(lambda: None, FakeDisplay(), 10.0)
    extension.lines(NONE, 0.0)
    extension.lines(NONE._replace(pages=1000), 10.0)

    assert "2.0 pages/s" in extension.lines(NONE._replace(pages=1020), 20.0)[0]


def test_a_dear_look_puts_off_the_next(loop: FakeLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that took 0.1 s is not repeated for 10 s, except at the end."""
    clock = [100.0]

    def look() -> Progress:
        clock[0] += 0.1
        return NONE

    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    display = FakeDisplay()
    extension = ProgressExtension(look, display, 30.0)
    extension.spider_opened(Spider("x"))
    extension.tick()
    clock[0] += 9.0
    extension.tick()

    assert len(display.told) == 2
    clock[0] += 1.1
    extension.tick()

    assert len(display.told) == 3
    extension.spider_closed(Spider("x"))

    assert len(display.told) == 5


def test_reads_the_schedulers_progress() -> None:
    """Another scheduler than ours, or none yet, has none; that ours has is seen in a crawl (test_small_web.py)."""
    assert scheduler_progress(get_crawler()) is None


def test_the_log_display_logs(caplog: pytest.LogCaptureFixture) -> None:
    """One INFO line a tick; a percent sign in it is no format."""
    with caplog.at_level(logging.INFO):
        LogDisplay(30.0).show(["7 pages", "100% fine"])

    assert [record.getMessage() for record in caplog.records] == ["7 pages · 100% fine"]


def test_the_panel_gives_stderr_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """While the panel stands the log writes through it; afterwards to the terminal again."""
    import sys

    handler = logging.StreamHandler(sys.stderr)
    monkeypatch.setattr(module, "get_scrapy_root_handler", lambda: handler)
    display = LiveDisplay("scrapy crawl web", CrawlDir(tmp_path))
    before = sys.stderr
    display.start()
    display.show(["7 pages"])
    display.stop()

    assert sys.stderr is before
    assert handler.stream is before
    assert "7 pages" in capsys.readouterr().err


def test_the_panel_ends_with_ten_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Where a crawl was, its summary stands below the last panel; not that of a log too long to read in a moment."""
    handler = logging.StreamHandler(io.StringIO())
    monkeypatch.setattr(module, "get_scrapy_root_handler", lambda: handler)
    monkeypatch.setenv("COLUMNS", "80")
    log = tmp_path / "log" / "requests-2026-11-22.jsonl"
    log.parent.mkdir()
    times = {"time": "2026-11-22T10:00:00Z", "end": "2026-11-22T10:00:01Z"}
    log.write_text(json.dumps({**times, "status": 200, "host": "a.test", "ip": "192.0.2.1", "bytes": 7}) + "\n")

    def shown() -> list[str]:
        display = LiveDisplay("scrapy crawl web", CrawlDir(tmp_path))
        display.start()
        display.show(["1 pages"])
        display.stop()
        return capsys.readouterr().err.rpartition("╯")[2].strip().splitlines()

    assert [line.split()[0] for line in shown() if not line.startswith(" ")] == [
        "Pages", "Hosts", "Statuses", "Bytes", "Errors", "Time", "Pauses", "WARC", "Index", "Log",
    ]  # fmt: skip
    monkeypatch.setattr(module, "_SUMMED_UP_BYTES", 10)
    assert shown() == []

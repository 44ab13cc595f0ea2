"""Scrapy's own words in the log of a crawl of ours: at DEBUG, and its statistics in one line."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator

import pytest
from scrapy.settings import Settings

from crawlerproject import terminal
from crawlerproject.terminal import quiet_scrapy

LOGGERS = ("scrapy.addons", "scrapy.crawler", "scrapy.middleware", "scrapy.utils.log", "scrapy.core.engine",
           "scrapy.statscollectors")  # fmt: skip


@pytest.fixture(autouse=True)
def filters() -> Iterator[None]:
    """Loggers are the process's: their filters are given back."""
    before = {name: list(logging.getLogger(name).filters) for name in LOGGERS}
    yield
    for name, kept in before.items():
        logging.getLogger(name).filters[:] = kept


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """A crawl's words of Scrapy's, with the level at which they come out."""
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("scrapy.utils.log").info("Versions:\nlxml")
        logging.getLogger("scrapy.crawler").info("Overridden settings:\n%(settings)s", {"settings": "{}"})
        logging.getLogger("scrapy.crawler").info("Received SIGINT, shutting down gracefully")
        logging.getLogger("scrapy.middleware").info("Enabled extensions:\n[]")
        logging.getLogger("scrapy.core.engine").info("Spider opened")
        logging.getLogger("scrapy.core.engine").error("Scraper close failure")
        logging.getLogger("scrapy.statscollectors").info("Dumping Scrapy stats:\n{'a/b': 1,\n 'c': 2}")
    return [(record.levelname, re.sub(r"\n *", "\n", record.getMessage())) for record in caplog.records]


def test_in_a_log_the_head_is_for_debug(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens stays at INFO; the statistics keep their names and values, in one line."""
    monkeypatch.setattr("sys.stderr", io.StringIO())
    settings = Settings()
    quiet_scrapy(settings)

    assert logged(caplog) == [
        ("DEBUG", "Versions:\nlxml"),
        ("DEBUG", "Overridden settings:\n{}"),
        ("INFO", "Received SIGINT, shutting down gracefully"),
        ("DEBUG", "Enabled extensions:\n[]"),
        ("INFO", "Spider opened"),
        ("ERROR", "Scraper close failure"),
        ("INFO", "Dumping Scrapy stats: {'a/b': 1, 'c': 2}"),
    ]
    assert settings["LOG_FORMAT"] == Settings()["LOG_FORMAT"]


def test_on_a_terminal_the_statistics_are_too(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The panel and the ten lines say it better; lines have a time and no date, unless the operator set a format."""
    monkeypatch.setattr(terminal, "has_panel", lambda settings: True)
    settings = Settings()
    quiet_scrapy(settings)

    assert [level for level, _ in logged(caplog)] == ["DEBUG", "DEBUG", "INFO", "DEBUG", "DEBUG", "ERROR", "DEBUG"]
    assert settings["LOG_DATEFORMAT"] == "%H:%M:%S"
    own = Settings({"LOG_FORMAT": "%(message)s"}, priority="cmdline")
    quiet_scrapy(own)
    assert own["LOG_FORMAT"] == "%(message)s"

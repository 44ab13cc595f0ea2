"""``scrapy doctor`` on a bot's folder that a web server serves, and on all that may be wrong with it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from crawlerproject.reports.bot_page import RANGES
from tests.commands.crawled import scrapy
from tests.hostile.name_server import name_server

NAMES = {
    "7.2.0.192.in-addr.arpa": "bot7.crawl.example.com.",
    "bot7.crawl.example.com": "192.0.2.7",
    "8.2.0.192.in-addr.arpa": "bot8.crawl.example.com.",
    "bot8.crawl.example.com": "192.0.2.99",
    "9.2.0.192.in-addr.arpa": "bot9.example.org.",
    "bot9.example.org": "192.0.2.9",
}


class Serving(SimpleHTTPRequestHandler):
    """Of a folder; ``date`` replaces the one of its answers."""

    date = ""

    def log_message(self, *args: object) -> None:
        """Nothing."""

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Today's, or the one that is given."""
        return self.date or super().date_time_string(timestamp)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The folder as a web site: its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Serving, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def dns() -> Iterator[str]:
    """A DNS server with NAMES."""
    with name_server(lambda name: NAMES.get(name, "")) as (_, place):
        yield place


Doctor = Callable[..., tuple[int, dict[str, tuple[bool | None, str]]]]


@pytest.fixture
def doctor(tmp_path: Path, dns: str) -> Iterator[Doctor]:
    """A folder written by ``scrapy botpage`` and served; what the doctor says of it, by subject, the worst first."""
    with served(tmp_path) as url:
        settings = {
            "CRAWLER_CONTACT": "you@example.org", "CRAWLER_INFO_URL": url, "CRAWLER_NAME": "TownBot",
            "IDENTITY_RANGES": "192.0.2.7", "FETCH_DNS_SERVERS": dns, "WARC_OPERATOR": "A town",
        }  # fmt: skip

        def given(changes: dict[str, str]) -> list[str]:
            return [word for name, value in (settings | changes).items() for word in ("-s", f"{name}={value}")]

        def ask(**changes: str) -> tuple[int, dict[str, tuple[bool | None, str]]]:
            ended = scrapy("doctor", "--json", *given(changes))
            rows = sorted(json.loads(ended.stdout), key=lambda row: row["good"] is False)
            return ended.returncode, {row["about"]: (row["good"], row["said"]) for row in rows}

        assert scrapy("botpage", str(tmp_path), *given({})).returncode == 0
        yield ask


def test_what_botpage_has_written_is_good(doctor: Doctor) -> None:
    """Contact, page, purpose, ranges, names and clock: nothing is to be mended."""
    status, found = doctor()

    assert (status, {about for about, (good, _) in found.items() if good}) == (
        0,
        {"contact", "page", "purpose", "ranges", "reverse-dns", "clock"},
    )


@pytest.mark.parametrize(
    ("changes", "about", "sentence"),
    [
        ({"CRAWLER_CONTACT": ""}, "contact", "CRAWLER_CONTACT is empty"),
        ({"CRAWLER_INFO_URL": ""}, "page", "CRAWLER_INFO_URL is empty"),
        ({"WARC_OPERATOR": ""}, "operator", "WARC_OPERATOR is empty"),
        ({"CRAWLER_INFO_URL": "http://127.0.0.1:1/"}, "page", "cannot be had"),
        ({"CRAWLER_INFO_URL": "bot.example"}, "page", "no http or https URL"),
        ({"CRAWLER_NAME": "OtherBot"}, "page", "does not name OtherBot"),
        ({"PURPOSE": "ai-train"}, "purpose", "no word on PURPOSE=ai-train"),
        ({"IDENTITY_RANGES": ""}, "ranges", "IDENTITY_RANGES is empty"),
        ({"IDENTITY_RANGES": "192.0.2.7,192.0.2.64/28"}, "ranges", "differ in 192.0.2.64/28"),
        (
            {"IDENTITY_RANGES": "192.0.2.8"},
            "reverse-dns",
            "192.0.2.8 has the name bot8.crawl.example.com, which does not",
        ),
        ({"IDENTITY_RANGES": "192.0.2.7,192.0.2.10"}, "reverse-dns", "192.0.2.10 has no name"),
        ({"IDENTITY_RANGES": "192.0.2.7,192.0.2.9"}, "reverse-dns", "below example.com, example.org"),
    ],
)
def test_what_is_wrong_is_named(doctor: Doctor, changes: dict[str, str], about: str, sentence: str) -> None:
    """One sentence and exit status 1."""
    status, found = doctor(**changes)

    assert (status, found[about][0]) == (1, False)
    assert sentence in found[about][1]


@pytest.mark.parametrize(
    ("changes", "untold"),
    [
        ({"CRAWLER_INFO_URL": ""}, {"purpose", "clock", "ranges"}),
        ({"CRAWLER_INFO_URL": "http://127.0.0.1:1/"}, {"purpose", "clock", "ranges"}),
        ({"IDENTITY_RANGES": ""}, {"reverse-dns"}),
    ],
)
def test_what_cannot_be_told_is_said_to_be_so(doctor: Doctor, changes: dict[str, str], untold: set[str]) -> None:
    """Neither good nor to be mended: what a page, or the ranges, would show."""
    _, found = doctor(**changes)

    assert {about for about, (good, _) in found.items() if good is None} - {"address"} == untold
    assert all(("is unknown" in found[about][1] or "cannot be seen" in found[about][1]) for about in untold)


def test_a_clock_that_is_off_and_an_old_file_are_named(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the date of the page's server, and by the time in the file of ranges."""
    monkeypatch.setattr(Serving, "date", "Sat, 31 Jan 2026 12:00:00 GMT")
    file = tmp_path / RANGES
    ranges = json.loads(file.read_text())
    file.write_text(json.dumps(ranges | {"creationTime": "2026-01-31T12:00:00Z"}))

    status, found = doctor()

    assert (status, found["clock"][0], found["ranges"][0]) == (1, False, False)
    assert "ahead of" in found["clock"][1]
    assert "days old" in found["ranges"][1]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"prefixes": 3}', '{"prefixes": [{}]}', '{"prefixes": [], "creationTime": "x"}']
)
def test_a_file_of_ranges_that_is_none_is_named(doctor: Doctor, tmp_path: Path, content: str) -> None:
    """Whatever is there instead."""
    (tmp_path / RANGES).write_text(content)

    assert doctor()[1]["ranges"][0] is False

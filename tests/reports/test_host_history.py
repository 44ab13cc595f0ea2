"""The history of a host: its attempts with the pauses before them, and robots.txt then and now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from crawlerproject.reports.host_history import HostStory, bare_host, host_story
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.logs.request_log import attempt_line

START = 1_772_445_600.0  # 2026-03-02 10:00:00 UTC


def attempt(second: float, host: str = "a.test", took: float = 0.5, **changes: Any) -> dict[str, Any]:
    """One that began at ``second``."""
    fields: dict[str, Any] = {
        "host": host,
        "ip": "192.0.2.1",
        "status": 200,
        "bytes": 100,
        "delay_seconds": 5.0,
    }
    at = START + second
    known: dict[str, Any] = {
        "started_at": at,
        "ended_at": at + took,
        "url": f"http://{host}/{second}",
        "reason": "fetched",
    }
    return attempt_line(**known | fields | changes)


def story(folder: Path, *attempts: dict[str, Any], host: str = "a.test", subdomains: bool = False) -> HostStory:
    """Of a crawl with these."""
    crawl = CrawlDir(folder)
    crawl.log.mkdir(exist_ok=True)
    lines = b"".join(orjson.dumps(each) + b"\n" for each in attempts)
    (crawl.log / "requests-2026-03-02.jsonl").write_bytes(lines)
    return host_story([crawl], host, subdomains=subdomains)


def test_pauses_are_from_end_to_start(tmp_path: Path) -> None:
    """None before the first; a promise that was not kept is named."""
    found = story(tmp_path, attempt(0), attempt(5.5), attempt(9.0))
    assert [visit.pause_seconds for visit in found.visits] == [None, 5.0, 3.0]
    assert [visit.too_soon for visit in found.visits] == [False, False, True]
    assert (found.pauses, found.too_soon) == ([5.0, 3.0], 1)
    assert found.visits[2].as_dict()["pause_seconds"] == 3.0


def test_what_reached_no_server_disturbed_none(tmp_path: Path) -> None:
    """It has no pause, ends none, and is no visit of the host."""
    found = story(tmp_path, attempt(0), attempt(2.0, ip="", status=None, reason="robots"), attempt(5.5))
    assert [visit.pause_seconds for visit in found.visits] == [None, None, 5.0]
    assert len(found.reached) == 2
    assert found.statuses == {"200": 2, "robots": 1}
    assert found.received_bytes == 300


def test_the_ports_of_a_name_share_its_pause(tmp_path: Path) -> None:
    """As they share its pace."""
    found = story(tmp_path, attempt(0), attempt(2.0, "a.test:8080"))
    assert [visit.attempt["host"] for visit in found.visits] == ["a.test", "a.test:8080"]
    assert found.too_soon == 1


def test_without_a_promise_nothing_is_too_soon(tmp_path: Path) -> None:
    """What a page loads in its turn has none."""
    found = story(tmp_path, attempt(0), attempt(0.6, delay_seconds=None))
    assert (found.visits[1].pause_seconds, found.too_soon) == (0.1, 0)


def test_subdomains_on_request(tmp_path: Path) -> None:
    """Names that only end alike are others."""
    logged = (attempt(0), attempt(1, "www.a.test"), attempt(2, "nota.test"))
    assert [visit.attempt["host"] for visit in story(tmp_path, *logged).visits] == ["a.test"]
    below = story(tmp_path, *logged, subdomains=True)
    assert [visit.attempt["host"] for visit in below.visits] == ["a.test", "www.a.test"]


def test_a_host_that_was_never_asked(tmp_path: Path) -> None:
    """Nothing is known, which is no error."""
    found = story(tmp_path, attempt(0), host="b.test")
    assert (found.visits, found.pauses, found.began) == ([], [], None)


@pytest.mark.parametrize(
    ("pasted", "host"),
    [
        ("Example.ORG", "example.org"),
        ("https://example.org/page?q=1", "example.org"),
        ("example.org:8080", "example.org"),
        ("http://me@example.org:8080/", "example.org"),
        (" example.org. ", "example.org"),
    ],
)
def test_a_host_as_an_operator_pastes_it(pasted: str, host: str) -> None:
    """A name, a name with a port, or a URL."""
    assert bare_host(pasted) == host

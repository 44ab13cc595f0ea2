"""The ten lines after a crawl, from logs written here."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest

from crawlerproject.reports.summary import HostStory, bare_host, host_story, main, summarise
from crawlerproject.rules.politeness.pause_audit import Pause
from crawlerproject.stores.crawl_dir import CrawlDir, write_facts
from crawlerproject.stores.logs.request_log import attempt_line


def entry(start: str, end: str, **changes: Any) -> bytes:
    """One log line at two times of the same day."""
    fields = {
        "time": f"2026-03-02T{start}+00:00",
        "end": f"2026-03-02T{end}+00:00",
        "status": 200,
        "reason": "fetched",
        "url": "http://a.test/",
        "host": "a.test",
        "ip": "127.0.0.1",
        "hop": "L",
        "bytes": 100,
        "delay_seconds": 5.0,
    }
    return orjson.dumps(fields | changes) + b"\n"


def crawl(folder: Path, *lines: bytes) -> CrawlDir:
    """A crawl folder with these lines in its log."""
    (folder / "log").mkdir()
    (folder / "log" / "requests-2026-03-02.jsonl").write_bytes(b"".join(lines))
    return CrawlDir(folder)


def kept(pause: Pause | None) -> tuple[float, float]:
    """Seconds kept and promised, at the one host of the logs here."""
    assert pause is not None
    assert pause.name == "a.test"
    return pause.kept_seconds, pause.promised_seconds


def test_counts_pages_robots_hosts_and_bytes(tmp_path: Path) -> None:
    """Robots.txt is an answer but no page; so is what a page needs to be seen."""
    summary = summarise(
        crawl(
            tmp_path,
            entry("10:00:00.000000", "10:00:01.000000", hop="P", status=404, reason="http-error"),
            entry("10:00:06.000000", "10:00:07.000000"),
            entry("10:00:06.000000", "10:00:08.000000", host="b.test", hop=""),
            entry("10:00:07.000000", "10:00:08.000000", host="c.test", hop="LPR"),
            entry("10:00:07.500000", "10:00:08.000000", host="d.test", hop="LER"),
        )
    )

    assert (summary.pages, summary.robots, summary.requisites) == (2, 2, 1)
    assert summary.lines()[0] == "Pages      2 and 2 robots.txt, 1 that pages need"
    assert (summary.hosts, summary.bytes) == (4, 500)
    assert summary.statuses == {200: 4, 404: 1}
    assert summary.duration_seconds == 8.0


def test_counts_errors_by_reason(tmp_path: Path) -> None:
    """What got no answer is no page, and is counted under its word."""
    summary = summarise(
        crawl(tmp_path, entry("10:00:00", "10:00:01", status=None, reason="dns-not-found", ip=None, bytes=0))
    )

    assert summary.pages == 0
    assert summary.errors == {"dns-not-found": 1}


def test_finds_the_tightest_pause(tmp_path: Path) -> None:
    """The pause runs from one answer's end to the next start, and the least margin is shown."""
    summary = summarise(
        crawl(
            tmp_path,
            entry("10:00:00.000000", "10:00:01.000000"),
            entry("10:00:06.250000", "10:00:07.000000"),
            entry("10:00:12.125000", "10:00:13.000000"),
        )
    )

    assert kept(summary.tightest) == (5.125, 5.0)
    assert summary.short_pauses == 0
    assert "none shorter than promised; the closest: 5.125 s kept, 5.000 s promised (a.test)" in summary.lines()[6]


def test_counts_a_short_pause(tmp_path: Path) -> None:
    """Less than promised is said, not averaged away."""
    summary = summarise(crawl(tmp_path, entry("10:00:00", "10:00:01"), entry("10:00:05", "10:00:06")))

    assert summary.short_pauses == 1
    assert "1 shorter than promised" in summary.lines()[6]


def test_overlapping_requests_are_a_short_pause(tmp_path: Path) -> None:
    """A second request before the first answer's end is the worst of all."""
    summary = summarise(crawl(tmp_path, entry("10:00:00", "10:00:09"), entry("10:00:05", "10:00:06")))

    assert kept(summary.tightest) == (-4.0, 5.0)


def test_what_never_reached_the_host_disturbed_nobody(tmp_path: Path) -> None:
    """A failure without an address (DNS) neither starts nor ends a pause."""
    summary = summarise(
        crawl(
            tmp_path,
            entry("10:00:00", "10:00:01"),
            entry("10:00:02", "10:00:03", ip=None, status=None),
            entry("10:00:06", "10:00:07"),
        )
    )

    assert kept(summary.tightest) == (5.0, 5.0)


def test_reads_compressed_days_and_skips_a_cut_line(tmp_path: Path) -> None:
    """Older days are gzip files; a line that a crash cut is counted apart."""
    crawl(tmp_path, entry("10:00:06", "10:00:07"), b'{"time": "2026-03-0')
    (tmp_path / "log" / "requests-2026-03-01.jsonl.gz").write_bytes(gzip.compress(entry("10:00:00", "10:00:01")))
    summary = summarise(CrawlDir(tmp_path))

    assert summary.pages == 2
    assert summary.unreadable_lines == 1
    assert "(1 line unreadable)" in summary.lines()[9]


def test_several_workers_are_one_crawl(tmp_path: Path) -> None:
    """Their logs are judged in the order of time: a host may have gone from one to the other."""
    for name, lines in (
        ("worker-1", (entry("10:00:00", "10:00:01"), entry("10:00:20", "10:00:21"))),
        ("worker-2", (entry("10:00:04", "10:00:05"), entry("10:00:10", "10:00:11", host="b.test"))),
    ):
        (tmp_path / name).mkdir()
        write_facts(crawl(tmp_path / name, *lines).run, {})
    summary = summarise(CrawlDir(tmp_path))

    assert (summary.pages, summary.hosts, summary.short_pauses) == (4, 2, 1)
    assert kept(summary.tightest) == (3.0, 5.0)
    assert summary.log.count == 2
    assert summary.lines()[9].endswith(f"in {tmp_path}/*/log/")


def test_ten_lines_even_of_nothing(tmp_path: Path) -> None:
    """A crawl that never asked anything is summarised as well."""
    lines = summarise(CrawlDir(tmp_path)).lines()

    assert len(lines) == 10
    assert lines[0].split() == ["Pages", "0"]
    assert "no host was asked twice" in lines[6]


def test_sizes_of_the_files(tmp_path: Path) -> None:
    """WARC files and the index are counted in all their subfolders."""
    (tmp_path / "warc").mkdir()
    (tmp_path / "warc" / "a.warc.gz").write_bytes(b"12345")
    (tmp_path / "index" / "parquet" / "crawl=a").mkdir(parents=True)
    (tmp_path / "index" / "parquet" / "crawl=a" / "b.parquet").write_bytes(b"123")
    summary = summarise(CrawlDir(tmp_path))

    assert (summary.warc.count, summary.warc.bytes) == (1, 5)
    assert (summary.index.count, summary.index.bytes) == (1, 3)


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Prints ten lines for a folder; 2 and one sentence for anything else."""
    assert main([str(tmp_path)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 10
    assert main([str(tmp_path / "missing")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


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

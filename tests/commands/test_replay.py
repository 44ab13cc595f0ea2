"""``scrapy replay``: all that a crawl has archived, while it goes on, and no trace of the look."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from crawlerproject.stores.archive.archive import Archive
from tests.commands.running import archive_of, scrapy, write
from tests.crawls.archive.pywb_server import TOOLS, ask, pywb_of
from tests.warc_samples import STARTED_AT, exchange
from tests.web.waiting import wait_until

WORKERS = ("worker-1", "worker-2")


def files(folder: Path) -> dict[str, bytes]:
    """Everything below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def words(text: str) -> bytes:
    """A page of its own."""
    return f"<!DOCTYPE html><title>{text}</title><p>{text}".encode()


def capture(into: Archive, url: str, text: str) -> None:
    """Archived and committed."""
    body = words(text)
    write(into, url, exchange(body, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)))
    into.flush()


@pytest.mark.skipif(not TOOLS.exists(), reason="make test makes .venv-tools")
def test_a_fleet_that_runs_is_replayed_as_one_crawl(tmp_path: Path) -> None:
    """Closed files, open ones as they grow and are closed, a worker that joins; Ctrl-C leaves no trace of it."""
    crawl = tmp_path / "crawl"
    first = archive_of(crawl / WORKERS[0])
    (crawl / WORKERS[0] / "run.json").write_text("{}")
    capture(first, "http://closed.test/", "one")
    first.close()
    clock = iter(STARTED_AT + 60 * minute for minute in range(1, 10_000))
    first = archive_of(crawl / WORKERS[0], lambda: next(clock))
    capture(first, "http://open.test/", "two")
    server: tuple[str, int]

    def replayed(url: str) -> bytes:
        return ask(server, f"/crawl/20260921141320id_/{url}")[1]

    def found(url: str, body: bytes) -> None:
        wait_until(lambda: replayed(url) == body, f"{url} came")

    before = files(crawl)
    with pywb_of(crawl, tmp_path) as server:
        assert replayed("http://closed.test/") == words("one")
        assert replayed("http://open.test/") == words("two")
        assert files(crawl) == before
        capture(first, "http://later.test/", "three")
        found("http://later.test/", words("three"))
        first.close()
        second = archive_of(crawl / WORKERS[1], lambda: STARTED_AT + 1)
        (crawl / WORKERS[1] / "run.json").write_text("{}")
        capture(second, "http://joined.test/", "four")
        found("http://joined.test/", words("four"))
        assert replayed("http://later.test/") == words("three")
        listed = ask(server, "/crawl/cdx?url=http://later.test/*&output=json")[1].splitlines()
        assert [json.loads(line)["url"] for line in listed] == ["http://later.test/"]
        before = files(crawl)
    assert files(crawl) == before
    second.close()


def test_what_is_missing_is_one_sentence(tmp_path: Path) -> None:
    """No archive; a program that is none; a port that is none."""
    crawl = tmp_path / "crawl"
    nothing = scrapy("replay", str(crawl))
    made = archive_of(crawl)
    capture(made, "http://open.test/", "one")
    made.close()
    no_program = scrapy("replay", str(crawl), "-s", f"REPLAY_COMMAND={crawl}")
    no_port = scrapy("replay", str(crawl), "--port", "70000", "-s", "REPLAY_COMMAND=/bin/false")
    dead = scrapy("replay", str(crawl), "--port", "0", "-s", "REPLAY_COMMAND=/bin/false")

    assert {done.returncode for done in (nothing, no_program, no_port, dead)} == {2}
    assert "There is no folder" in nothing.stderr
    assert f"REPLAY_COMMAND={crawl} is no program" in no_program.stderr
    assert "Port 70000 of 127.0.0.1 is not to be had" in no_port.stderr
    assert "pywb (/bin/false) did not start" in dead.stderr


def test_without_pywb_the_command_that_brings_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found nowhere."""
    made = archive_of(tmp_path / "crawl")
    capture(made, "http://open.test/", "one")
    made.close()
    monkeypatch.setattr("crawlerproject.inspection.pywb._ENVIRONMENT", "no-such-folder")
    monkeypatch.setattr("shutil.which", lambda *args, **named: None)
    done = scrapy("replay", str(tmp_path / "crawl"))

    assert done.returncode == 2
    assert "this brings it: python3 -m venv .venv-tools && .venv-tools/bin/pip install pywb" in done.stderr

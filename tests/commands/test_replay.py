"""``scrapy replay``: all that a crawl has archived, while it goes on, and no trace of the look."""

from __future__ import annotations

import html
import json
import re
import tomllib
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader
from packaging.requirements import Requirement

from crawlerproject.batch.archive_contents import contents
from crawlerproject.inspection.pywb import write_first_page
from crawlerproject.reports.report_page import Linked, Title, replay_page
from crawlerproject.stores.archive.archive import Archive
from crawlerproject.stores.archive.capture_index import Captures
from tests.commands.running import archive_of, scrapy, write
from tests.crawls.archive.pywb_server import TOOLS, ask, pywb_of
from tests.warc_samples import STARTED_AT, exchange
from tests.web.running import PROJECT
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
        opens_with = ask(server, "/crawl/")[1].decode()
        assert "2 hosts with 2 pages." in opens_with
        assert '<a href="20260921141320/http://closed.test/">closed.test</a></td><td>one</td>' in opens_with
        assert b"url=/crawl/" in ask(server, "/")[1]
        assert files(crawl) == before
        capture(first, "http://later.test/", "three")
        found("http://later.test/", words("three"))
        wait_until(lambda: b">later.test</a>" in ask(server, "/crawl/")[1], "the first page has it")
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


def test_the_first_page_is_no_template(tmp_path: Path) -> None:
    """pywb puts it through Jinja: what strangers wrote comes out as it went in."""
    title = "{{ 7 * 7 }}{% endraw %}{% raw %}<script>"
    page = replay_page(Title(title, ""), [("Bot", title)], "1 host.", [], [Linked("1/http://a.test/", "a", title, [])])
    write_first_page(tmp_path, page)
    shown = Environment(loader=FileSystemLoader(tmp_path / "templates")).get_template("search.html").render()

    assert html.unescape(shown).count(title) == html.unescape(page).count(title) == 4
    assert "<script>" not in shown


def test_seeds_and_hosts_are_what_the_index_has(tmp_path: Path) -> None:
    """A seed with its last capture; a host with its front page; what has no HTML is no page; a torn line is none."""
    made = archive_of(tmp_path)
    for url, text in (("http://a.test/long/path", "Long"), ("http://a.test/", "Front"), ("http://b.test/x", "")):
        capture(made, url, text)
    write(made, "http://c.test/picture", exchange(b"GIF", b"HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\n\r\n"))
    made.close()
    (index,) = (tmp_path / "index").glob("*.cdxj")
    index.write_bytes(index.read_bytes() + b"torn")
    seeds = ["http://never.test/", "http://a.test/long/path", "http://c.test/picture"]

    found = contents([index], Captures([tmp_path]), seeds)

    assert [(seed.url, seed.title) for seed in found.seeds] == [(seeds[1], "Long"), (seeds[2], "")]
    hosts = [(host.host, host.title, host.pages, host.best.row.url) for host in found.hosts]
    assert hosts == [("a.test", "Front", 2, "http://a.test/"), ("b.test", "", 1, "http://b.test/x")]
    assert (found.hosts_in_all, found.pages, found.whole) == (2, 3, True)


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
    said = done.stderr.partition("this brings it: ")[2].strip()
    assert said.startswith("python3 -m venv .venv-tools && .venv-tools/bin/pip install pywb==")
    (pin,) = re.findall(r"\bpywb==\S+", said)  # these tests run with it
    assert f"\n{pin}\n" in (PROJECT / "requirements-tools.txt").read_text()
    assert said in (PROJECT / "docs" / "tutorial.md").read_text()


@pytest.mark.skipif(not TOOLS.exists(), reason="make test makes .venv-tools")
def test_pywb_cannot_be_an_extra_of_ours() -> None:
    """It pins a Redis client that ours excludes: no environment can have both. When that ends, make the extra."""
    (found,) = TOOLS.parent.glob("lib/python3*/site-packages/pywb-*.dist-info")
    (theirs,) = re.findall(r"^Requires-Dist: redis(\S+)$", (found / "METADATA").read_text(), re.MULTILINE)
    given = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dependencies"]
    (ours,) = (Requirement(each).specifier for each in given if Requirement(each).name == "redis")

    assert theirs == "==2.10.6"
    assert not ours.contains("2.10.6")

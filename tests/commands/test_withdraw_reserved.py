"""``scrapy withdraw --reserved``: what sites reserve by their newest words is shown no more."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from crawlerproject.rules.archive.warc_records import Context
from crawlerproject.rules.archive.withdrawal import State
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.operator_files.watched_lists import change_lines, withdrawn_of
from tests.commands.running import archive_of, scrapy
from tests.commands.test_withdraw import withdraw
from tests.warc_samples import STARTED_AT, exchange

ONE, TWO, SIX = "http://one.example", "http://two.example", "http://six.example"
HELD = [f"{ONE}/part/a", f"{ONE}/free", f"{TWO}/closed", f"{TWO}/opened", f"{TWO}/gone"]
HELD += [f"{SIX}/tdm", f"{SIX}/train", f"{SIX}/free"]
RESERVED = {f"{ONE}/part/a": "ai-use-robots-txt", f"{TWO}/closed": "ai-use-header"}
RESERVED |= {f"{SIX}/tdm": "ai-use-tdmrep", f"{SIX}/train": "ai-use-license"}
PLAIN = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n\r\n"
FAILED = b"HTTP/1.1 503 Busy\r\nContent-Type: text/plain\r\n\r\n"
WALL = b"HTTP/1.1 403 Forbidden\r\nContent-Type: text/html\r\nCF-Mitigated: challenge\r\n\r\n"
NO = b"User-agent: *\nContent-Usage: %btrain-ai=n\n"


@pytest.fixture
def folder(tmp_path: Path) -> CrawlDir:
    """A crawl that asked each page twice, or once, before and after sites changed their words."""
    made = archive_of(tmp_path / "crawl")

    def asked(hours: int, url: str, body: bytes, head: bytes | None = None, *notes: tuple[str, str]) -> None:
        when = STARTED_AT + 3600 * hours
        wire = exchange(body, head, started_at=when, ended_at=when + 1)
        context = Context(url, sample=body, extra=notes)
        if body:
            made.write(wire, context)
        else:  # kept nothing
            made.write_withheld(wire, context)

    asked(0, f"{ONE}/robots.txt", b"User-agent: *\nAllow: /\n", PLAIN)
    asked(0, f"{TWO}/robots.txt", NO % b"", PLAIN)
    asked(0, f"{SIX}/robots.txt", b"License: /l.xml\n", PLAIN)
    for number, url in enumerate(HELD):
        words = [("ai-use-page", "noai")] if url.endswith("opened") else []
        asked(1, url, b"<p>page %d of the first visit" % number, None, *words)
    asked(2, f"{ONE}/robots.txt", NO % b"/part ", PLAIN)
    asked(2, f"{TWO}/robots.txt", b"none", MISSING)
    rsl = b'<rsl><content url="/train"><license><prohibits>ai-train</prohibits></license></content></rsl>'
    asked(2, f"{SIX}/.well-known/tdmrep.json", b'[{"location": "/tdm", "tdm-reservation": 1}]', PLAIN)
    asked(2, f"{SIX}/l.xml", rsl, PLAIN)
    asked(3, f"{SIX}/l.xml", b"later", FAILED)
    asked(3, f"{ONE}/robots.txt", b"later", FAILED)  # says nothing: the older one stays in force
    asked(4, f"{ONE}/robots.txt", b"<!doctype html>wall", WALL)  # nor does this
    asked(3, f"{TWO}/closed", b"", None, ("ai-use-header", "tdm-reservation: 1"))
    asked(3, f"{TWO}/opened", b"<p>free now")
    made.close()
    return CrawlDir(tmp_path / "crawl")


def shown(folder: CrawlDir) -> list[str]:
    """The pages that are shown."""
    return [url for url in HELD if scrapy("lookup", url, "-s", f"CRAWL_DIR={folder}").returncode == 0]


def test_the_newest_words_decide(folder: CrawlDir) -> None:
    """Of robots.txt, by path, and of an answer that kept nothing; not for another purpose; all may be asked again."""
    nothing = withdraw(folder, "--reserved", "--purpose", "search")
    assert (nothing.returncode, shown(folder)) == (0, HELD), nothing.stderr
    assert not folder.withdrawn.exists()

    done = withdraw(folder, "--reserved", "--purpose", "ai-train")

    assert (done.returncode, done.stderr) == (0, "")
    assert shown(folder) == [url for url in HELD if url not in RESERVED]
    entries = withdrawn_of(folder).entries
    assert {entry.what: entry.why.split(": ")[1].split()[0] for entry in entries} == RESERVED
    assert all(entry.crawled for entry in entries)
    assert not (folder.parent / "never.txt").exists()
    assert withdraw(folder, "--reserved", "--purpose", "ai-train").returncode == 0
    assert withdrawn_of(folder).entries == entries  # again: nothing is left to do


def test_it_is_erased(folder: CrawlDir) -> None:
    """What was withdrawn by an earlier run, too; all else keeps its bytes, and verify finds all well."""
    assert withdraw(folder, "--reserved", "--purpose", "ai-train").returncode == 0

    done = withdraw(folder, "--reserved", "--purpose", "ai-train", "--erase")

    assert done.returncode == 0, done.stderr
    text = b"".join(gzip.decompress(warc.read_bytes()) for warc in folder.closed_warcs())
    assert [b"page %d of" % number in text for number in range(len(HELD))] == [url not in RESERVED for url in HELD]
    assert {entry.state for entry in withdrawn_of(folder).entries} == {"erased"}
    assert shown(folder) == [url for url in HELD if url not in RESERVED]
    assert scrapy("verify", str(folder)).returncode == 0
    assert "0 pages reserved" in withdraw(folder, "--reserved", "--purpose", "ai-train").stdout


def test_an_erasure_that_was_interrupted_is_ended(folder: CrawlDir) -> None:
    """Also where it died when all was cut out, so that nothing reserved is held any more."""
    arguments = ("--reserved", "--purpose", "ai-train", "--erase")
    assert withdraw(folder, *arguments).returncode == 0
    erased = withdrawn_of(folder).entries
    change_lines(folder.withdrawn, {entry: entry._replace(state=State.ERASING) for entry in erased})

    assert withdraw(folder, *arguments).returncode == 0

    assert withdrawn_of(folder).entries == erased


def test_it_takes_no_host(folder: CrawlDir) -> None:
    """One sentence and status 2."""
    done = withdraw(folder, "one.example", "--reserved")

    assert (done.returncode, "takes no host" in done.stderr) == (2, True)

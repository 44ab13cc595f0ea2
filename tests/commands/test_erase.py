"""``scrapy withdraw --erase``: the bytes are gone, all else is as it was, and a death in between does no harm."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from crawlerproject.operator_command import still
from crawlerproject.rules.archive.warc_members import TOMBSTONE, Member
from crawlerproject.rules.archive.warc_records import Context, Original
from crawlerproject.rules.robots.policy import RobotsRecord
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.archive.warc_reader import members
from crawlerproject.stores.crawl_dir import CrawlDir, take_lock
from crawlerproject.stores.operator_files.watched_lists import withdrawn_of
from crawlerproject.stores.protocols import ARCHIVE_FACT, Changes, PageRecord, pack_open
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore
from tests.commands.running import archive_of, scrapy, write
from tests.commands.test_withdraw import GONE, KEPT, WHY, processed, withdraw
from tests.warc_samples import STARTED_AT, exchange

SECRET = b"s3cr3t-of-the-owner"


EXPECTED = ("has not ended", "scrapy index makes it again", "Captures were erased", "of other pages", ".torn file")
"""What verify may say between two deaths: an index may still name what was asked back."""


class Death(BaseException):
    """The process ends here."""


class Made(NamedTuple):
    """A crawl with pages of two hosts in a closed file and in one that a killed process left open."""

    folder: CrawlDir
    lines: dict[str, list[bytes]]  # of the index before, by host


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Bodies of the one that asks have SECRET in them; a page of the other had the very bytes of one of them."""
    folder = CrawlDir(tmp_path / "crawl")
    folder.frontier.mkdir(parents=True)
    archive, store, changes = archive_of(folder, max_bytes=1), RocksStore(folder.frontier), Changes()
    for number in range(6):
        url = f"http://{(GONE, KEPT)[number % 2]}/{number}"
        body = b"<title>%s</title>%s %d" % ((SECRET, SECRET, number) if GONE in url else (b"", b"open", number))
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
        written = write(archive, url, exchange(body, head))
        changes.pages.append((parse(url).key, PageRecord(url, "fetched", 200, STARTED_AT, written.digest)))
        if number == 0:
            same = Original(written.record_id, url, written.date)
            again = f"http://{KEPT}/the-same"
            archive.write(exchange(body, head), Context(again, sample=body), None, same)
            changes.pages.append((parse(again).key, PageRecord(again, "fetched", 200, STARTED_AT, written.digest)))
        if number == 3:
            archive.flush()
            archive.warc.roll_if_full()
    robots = RobotsRecord(200, b"# " + SECRET, STARTED_AT, STARTED_AT + 1, "fetched").pack()
    changes.robots = [(f"http://{GONE}", robots), (f"http://{KEPT}", robots.replace(SECRET, b"open"))]
    archive.flush()
    archive.warc.sync()
    changes.facts = [(ARCHIVE_FACT, pack_open(archive.warc.state()))]
    store.apply(changes)
    archive.abandon()
    archive._index.wait()
    store.close()
    (folder.torn).mkdir()
    (folder.torn / "x.warc.gz.open.7.torn").write_bytes(b"\x1f\x8b cut off")
    copies = folder.robots_copies / "ab" / f"http_{GONE}"
    copies.mkdir(parents=True)
    (copies / "20260101T000000Z-abc.txt").write_bytes(SECRET)
    (index,) = folder.index.glob("*.cdxj")
    lines = index.read_bytes().splitlines()
    return Made(folder, {host: [line for line in lines if host.encode() in line] for host in (GONE, KEPT)})


def everything_in(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Each file, also unpacked."""
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        yield path, data
        if path.suffix == ".parquet":
            yield path, repr(pq.read_table(path).to_pylist()).encode()
        with suppress(OSError, EOFError):
            yield path, gzip.decompress(data)


def where(folder: Path) -> set[str]:
    """The files that hold the secret."""
    return {str(path.relative_to(folder)) for path, data in everything_in(folder) if SECRET in data}


def records(folder: CrawlDir) -> list[Member]:
    """Of all archive files."""
    found = [each for path in (*folder.closed_warcs(), *folder.open_warcs()) for each in members(path)]
    return [each for each in found if isinstance(each, Member)]


def test_it_is_gone_and_nothing_else(made: Made) -> None:
    """Tombstones of the same length, no byte of it anywhere, all other records, lines and rows as they were."""
    folder, lines = made
    processed(folder)
    (folder.processed / "pages" / "killed.parquet.part0a").write_bytes(SECRET)
    assert len(where(folder)) > 5
    before = records(folder)
    asked_back = {each.offset for each in before if GONE in each.url}

    done = withdraw(folder, GONE, "--why", WHY, "--erase")

    assert done.returncode == 0, done.stderr
    assert "3 captures in 2 WARC files erased" in done.stdout
    assert where(folder) == set()
    after = records(folder)
    assert [each for each in before if GONE not in each.url] == [each for each in after if each.kind != TOMBSTONE]
    stones = [each for each in after if each.kind == TOMBSTONE]
    assert len(stones) == 3
    assert {each.offset for each in stones} <= asked_back
    assert all(WHY.encode() in each.block and GONE.encode() not in each.block for each in stones)
    erased = {each.field("warc-record-id") for each in before if GONE in each.url and each.kind == "response"}
    assert {each.field("warc-refers-to") for each in stones} == erased
    (index,) = folder.index.glob("*.cdxj")
    assert index.read_bytes().splitlines() == lines[KEPT]
    with FrontierView(folder.frontier) as view:
        assert view.robots(f"http://{GONE}") is None
        assert view.robots(f"http://{KEPT}") is not None
    assert f"{GONE}  " in (line := folder.withdrawn.read_text())
    assert " erased  # " in line
    verified = scrapy("verify", str(folder))
    assert verified.returncode == 0, verified.stderr
    assert "3 tombstones" in verified.stderr
    assert "was withdrawn: 1 capture of other pages" in verified.stderr
    assert scrapy("recover", str(folder)).returncode == 0  # which takes a tombstone for a good record
    assert len([each for each in records(folder) if each.kind == TOMBSTONE]) == 3


def test_a_death_at_any_step(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each the folder is good, but for the erasure that has not ended; the same command ends it."""
    folder = made.folder
    processed(folder)
    deaths = step = 0
    renames = (os.rename, os.replace, os.unlink)
    for step in range(1, 200):
        left = step

        def counted(number: int, *given: object, **named: object) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise Death
            renames[number](*given, **named)  # type: ignore[arg-type]

        with monkeypatch.context() as patch:
            for number, function in enumerate(renames):
                patch.setattr(os, function.__name__, lambda *given, n=number, **named: counted(n, *given, **named))
            try:
                done = withdraw(folder, GONE, "--why", WHY, "--erase")
            except Death:
                deaths += 1
                if step % 4 == 0:
                    said = scrapy("verify", str(folder)).stderr.splitlines()
                    assert [line for line in said if not any(each in line for each in EXPECTED)] == [], step
                continue
        break
    assert (done.returncode, where(folder)) == (0, set()), done.stderr
    assert deaths > 3
    assert withdrawn_of(folder).entries[0].state == "erased"
    assert scrapy("verify", str(folder)).returncode == 0


def test_beside_a_crawl(made: Made) -> None:
    """Refused in one sentence; what was asked back is shown no more all the same, and nothing is erased."""
    lock = take_lock(made.folder)
    done = withdraw(made.folder, GONE, "--why", WHY, "--erase")
    os.close(lock)

    assert (done.returncode, "in use by a running crawl" in done.stderr) == (2, True)
    assert len(where(made.folder)) > 3
    assert scrapy("lookup", f"http://{GONE}/0", "-s", f"CRAWL_DIR={made.folder}").returncode == 1


def test_beside_what_reads_it(made: Made) -> None:
    """Tables and a search index that are just being made would have it again; and none is begun meanwhile."""
    processed(made.folder)
    with still([made.folder]), still([made.folder]):
        done = withdraw(made.folder, GONE, "--why", WHY, "--erase")
    assert (done.returncode, "A scrapy process, load or export is at work in" in done.stderr) == (2, True)
    assert SECRET in b"".join(data for _, data in everything_in(made.folder.warc))
    with still([made.folder], erases=True):
        refused = [scrapy(command, str(made.folder)) for command in ("process", "load", "export")]
    assert {(each.returncode, "A scrapy withdraw --erase is at work" in each.stderr) for each in refused} == {(2, True)}

    assert withdraw(made.folder, GONE, "--why", WHY, "--erase").returncode == 0
    assert where(made.folder) == set()


def test_what_was_uploaded(made: Made, tmp_path: Path) -> None:
    """There it is replaced, though the copy there is the only one; packs of robots.txt and the list as well."""
    folder, place = made.folder, tmp_path / "place"
    (torn,) = folder.torn.iterdir()
    torn.unlink()
    pack = folder.upload_staged / "log" / "robots-20260101T000000000Z.tar.gz"
    pack.parent.mkdir(parents=True)
    with tarfile.open(pack, "w:gz") as tar:
        for host, text in ((GONE, SECRET), (KEPT, b"open")):
            member = tarfile.TarInfo(f"robots/ab/http_{host}/20260101T000000Z-abc.txt")
            member.size = len(text)
            tar.addfile(member, BytesIO(text))
    sent = scrapy("upload", str(folder), "-s", f"ARCHIVE_URL=file://{place}", "-s", "ARCHIVE_KEEP_LOCAL=False")
    assert sent.returncode == 0, sent.stderr
    assert not folder.closed_warcs()
    assert len(where(place)) > 1

    done = withdraw(folder, GONE, "--why", WHY, "--erase", "-s", "ARCHIVE_KEEP_LOCAL=False")

    assert done.returncode == 0, done.stderr
    assert (where(folder), where(place)) == (set(), set())
    assert (place / "withdrawn.txt").read_bytes() == folder.withdrawn.read_bytes()
    with tarfile.open(place / "log" / pack.name) as tar:
        assert [KEPT in name for name in tar.getnames()] == [True]
    assert not folder.closed_warcs()
    for crawl in (str(folder), f"file://{place}"):
        for host, status in ((GONE, 1), (KEPT, 0)):
            assert scrapy("lookup", f"http://{host}/{status ^ 1}", "-s", f"CRAWL_DIR={crawl}").returncode == status
    checked = scrapy("upload", str(folder), "--check", "-s", f"ARCHIVE_URL=file://{place}")
    assert checked.returncode == 0, checked.stderr


def test_damage_is_said(made: Made) -> None:
    """What cannot be read may hold some of it: recover first, then again."""
    (path,) = made.folder.closed_warcs()
    data = bytearray(path.read_bytes())
    data[-30] ^= 1
    path.write_bytes(data)

    done = withdraw(made.folder, GONE, "--why", WHY, "--erase")

    assert (done.returncode, "scrapy recover" in done.stderr) == (2, True)
    assert "has not ended" in scrapy("verify", str(made.folder)).stderr
    assert scrapy("recover", str(made.folder)).returncode == 1
    assert withdraw(made.folder, GONE, "--erase").returncode == 0
    assert where(made.folder) == set()

"""Recovery: what was committed stays, what was not is kept aside, and every case says so."""

from __future__ import annotations

import random
from pathlib import Path

import orjson
import pytest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import count_rows
from crawlerproject.reports.warc_check import check_file
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.row_kinds import FLAG_FRAME, FLAG_REQUISITE, requisite_key
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.archive.recovery import Discovery, LostCapture, LostPages, places_of, recover
from crawlerproject.stores.index.index_files import CdxjFiles
from crawlerproject.stores.protocols import Changes, OpenFile, PageRecord, QueuedPage
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.stores.archive.test_archive import add, assert_clean, files


@pytest.fixture
def warcs(tmp_path: Path) -> Path:
    """The WARC folder of a crawl's."""
    (tmp_path / "warc").mkdir()
    return tmp_path / "warc"


def opened(folder: Path, captures: int = 2) -> tuple[Path, OpenFile, list[int]]:
    """An open file left by a dead process: its path, its state, and its capture boundaries."""
    warc = files(folder)
    offsets = [add(warc)[1].offset for _ in range(captures)]
    state = warc.state()
    warc.abandon()
    assert state is not None
    return folder / f"{state.filename}.open", state, [*offsets, state.length]


def test_nothing_to_do(warcs: Path) -> None:
    """A new crawl, and a file that ends where it was committed."""
    assert recover(warcs / "new", None).messages == []
    path, state, _ = opened(warcs)
    recovery = recover(warcs, state)
    assert (recovery.open_file, recovery.torn, recovery.messages) == (state, [], [])
    assert path.stat().st_size == state.length


def test_a_tail_past_the_commit_is_cut_and_kept(warcs: Path) -> None:
    """The uncommitted capture moves to a .torn file with its offset in the name."""
    path, state, ends = opened(warcs)
    tail = path.read_bytes()[ends[1] :]
    recovery = recover(warcs, OpenFile(state.filename, ends[1]))
    assert recovery.open_file == (state.filename, ends[1])
    torn = path.parent.with_name("torn") / f"{path.name}.{ends[1]}.torn"
    assert recovery.torn == [(torn, len(tail))]
    assert torn.read_bytes() == tail
    assert str(len(tail)) in recovery.messages[0]
    again = files(warcs, resume=recovery.open_file)
    add(again)
    again.close()
    assert_clean(warcs / state.filename)


def test_earlier_torn_files_stay(warcs: Path) -> None:
    """Three crashes at the same offset leave three .torn files."""
    path, state, _ = opened(warcs)
    for number in range(3):
        with path.open("ab") as file:
            file.write(b"torn %d" % number)
        recover(warcs, state)
    assert {torn.read_bytes() for torn in warcs.with_name("torn").glob("*.torn")} == {b"torn 0", b"torn 1", b"torn 2"}
    assert path.stat().st_size == state.length


def test_files_begun_after_the_commit(warcs: Path) -> None:
    """An open file that no commit knows is moved aside whole, again and again."""
    for _ in range(2):
        path, _, _ = opened(warcs)
        content = path.read_bytes()
        recovery = recover(warcs, None)
        assert recovery.open_file is None
        assert recovery.torn[0][0].read_bytes() == content
        assert not list(warcs.glob("*.open"))
    assert len(list(warcs.with_name("torn").glob("*.torn"))) == 2


def test_closed_before_the_crash(warcs: Path) -> None:
    """The committed file was renamed already: nothing is cut, the later one goes aside."""
    warc = files(warcs)
    add(warc)
    state = warc.state()
    warc.close()
    opened(warcs)
    assert state is not None
    recovery = recover(warcs, state)
    assert recovery.open_file is None
    assert len(recovery.torn) == 1
    assert (warcs / state.filename).stat().st_size == state.length


def test_a_missing_file_is_said(warcs: Path) -> None:
    """A committed file that is nowhere is no reason to stop, but it is said."""
    recovery = recover(warcs, OpenFile("gone.warc.gz", 99))
    assert recovery.open_file is None
    assert "gone.warc.gz is missing" in recovery.messages[0]


@pytest.mark.parametrize("tail", [b"", b"\0" * 64, b"\x1f\x8b\x08"])
def test_power_loss(warcs: Path, tail: bytes) -> None:
    """A file shorter than committed is cut at its last whole capture, not at its last whole record."""
    path, state, ends = opened(warcs)
    path.write_bytes(path.read_bytes()[: ends[2] - 100 - len(tail)] + tail)
    recovery = recover(warcs, state)
    assert recovery.open_file == (state.filename, ends[1])
    assert "the file system lost the rest" in recovery.messages[0]
    assert len(recovery.torn) == 1
    assert check_file(path).clean


def test_power_loss_of_everything(warcs: Path) -> None:
    """A file without one good record is moved aside and a new one is begun."""
    path, state, _ = opened(warcs)
    path.write_bytes(b"\0" * 10)
    recovery = recover(warcs, state)
    assert recovery.open_file is None
    assert recovery.torn[0][1] == 10


def test_random_cuts(warcs: Path) -> None:
    """Fifty deaths at random bytes after random commits: the file is clean, and holds exactly what was committed."""
    chance = random.Random(4)
    index = CdxjFiles(warcs / "index")
    committed: OpenFile | None = None
    kept = 0
    for round_number in range(50):
        recovery = recover(warcs / "warc", committed, index)
        warc = files(warcs / "warc", index=index, resume=recovery.open_file)
        fates = chance.randrange(4)
        for number in range(fates):
            add(warc, f"http://h{round_number}.test/{number}", index)
        if chance.random() < 0.7:
            index.flush()
            committed, kept = warc.state() or committed, kept + fates
        start = warc.state()
        for number in range(chance.randrange(3)):
            add(warc, f"http://lost{round_number}.test/{number}", index)
        if chance.random() < 0.3:
            index.flush()
        state = warc.state()
        warc.abandon()
        index = CdxjFiles(warcs / "index")  # what was in memory dies
        if state and start and state.length > start.length:
            path = warcs / "warc" / f"{state.filename}.open"
            with path.open("r+b") as file:
                file.truncate(chance.randrange(start.length, state.length))
    recovery = recover(warcs / "warc", committed, index)
    last = files(warcs / "warc", index=index, resume=recovery.open_file)
    name = last.close()
    assert name is not None
    report = check_file(warcs / "warc" / name)
    assert report.clean
    lines = index.path(name).read_bytes().splitlines()
    assert len(lines) == report.records["response"] == kept
    assert not any(b"lost" in line for line in lines)
    index.rebuild(warcs / "warc" / name)
    assert index.path(name).read_bytes().splitlines() == lines


DIGEST, OTHER = b"d" * 20, b"o" * 20
URL = "http://a.example/x"


@pytest.fixture
def store(tmp_path: Path) -> RocksStore:
    """A frontier that took one page for archived, and its payload for the first of its kind."""
    made = RocksStore(tmp_path / "frontier")
    original = Original("<urn:uuid:00000000-0000-4000-8000-000000000001>", URL, "2026-11-21T00:00:00.000000Z")
    page = (parse(URL).key, PageRecord(URL, "fetched", 200, 1.0, DIGEST, "etag"))
    made.apply(
        Changes(pages=[page], payloads=[(DIGEST, original)], hosts=[("a.example", Host("a.example", 5.0).pack())])
    )
    return made


def queue(store: RocksStore) -> list[QueuedPage]:
    """What waits."""
    return store.head("a.example", 10)


def test_queued_once(store: RocksStore, tmp_path: Path) -> None:
    """The page waits, its record asks for no conditional request, its payload is unknown, the facts are applied."""
    attempt = {"url": URL, "depth": 3, "hop": "LL", "via": "http://a.example/"}
    (tmp_path / "requests-2026-09-21.jsonl").write_bytes(orjson.dumps(attempt) + b"\n")
    pages = LostPages(store, tmp_path, 5.0, count_rows)
    assert pages.fetch_again([LostCapture(URL, DIGEST)] * 2, [("warc", b"x")]) == 1
    assert pages.fetch_again([LostCapture(URL, DIGEST)]) == 0

    (row,) = queue(store)
    assert (row.url, row.key, row.tries, row.depth, row.hops) == (URL, parse(URL).key, 0, 3, "LL")
    record = store.page(row.key)
    assert record is not None
    assert (record.reason, record.status, record.etag) == ("lost", 0, "")
    assert store.original(DIGEST) is None
    assert store.fact("warc") == b"x"
    packed = store.host("a.example")
    assert packed is not None
    assert Host.unpack("a.example", packed).rows == 1  # or the crawl would end before its turn comes


@pytest.mark.parametrize("frame", [False, True])
def test_a_requisite_comes_back_as_one(tmp_path: Path, frame: bool) -> None:
    """As no page; a document, whose record is apart, as a frame."""
    store, key = RocksStore(tmp_path / "frontier"), parse(URL).key
    record = PageRecord(URL, "fetched", 200, 1.0, DIGEST)
    store.apply(Changes(pages=[(requisite_key(key) if frame else key, record)]))
    attempt = {"url": URL, "depth": 1, "hop": "LER", "via": "http://a.example/"}
    (tmp_path / "requests-2026-09-21.jsonl").write_bytes(orjson.dumps(attempt) + b"\n")

    assert LostPages(store, tmp_path, 5.0, count_rows).fetch_again([LostCapture(URL, DIGEST)]) == 1

    (row,) = queue(store)
    assert (row.key, row.page_key) == (requisite_key(key), key)
    assert row.flags == FLAG_REQUISITE | (FLAG_FRAME if frame else 0)


@pytest.mark.parametrize(
    "lost", [LostCapture(URL, OTHER), LostCapture("http://a.example/robots.txt", DIGEST), LostCapture("dns:x", b"")]
)
def test_what_is_left_alone(store: RocksStore, tmp_path: Path, lost: LostCapture) -> None:
    """A page with a later capture, one that the frontier does not know, what is no page: nothing changes."""
    assert LostPages(store, tmp_path, 5.0, count_rows).fetch_again([lost]) == 0

    assert queue(store) == []
    assert store.original(DIGEST) is not None


def test_how_a_page_was_found(tmp_path: Path) -> None:
    """The last lines of the log that name it, from the newest day that does, torn lines looked past."""
    line = '{"url":"%s","depth":%d,"hop":"%s","via":"%s"}\n'
    (tmp_path / "requests-2026-11-20.jsonl").write_text(
        line % (URL, 1, "L", "") + line % ("http://old.example/", 2, "LR", "v")
    )
    (tmp_path / "requests-2026-11-21.jsonl").write_text('{"url\n' + line % (URL, 3, "LL", "http://a.example/") + '{"u')

    found = places_of(tmp_path, [URL, "http://old.example/", "http://never.example/"])

    assert found == {URL: Discovery(3, "LL", "http://a.example/"), "http://old.example/": Discovery(2, "LR", "v")}
    assert places_of(tmp_path / "nowhere", [URL]) == {}

"""Pages whose captures are gone come back, once, and nothing later stands on what is gone."""

from pathlib import Path

import orjson
import pytest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.hosts.on_disk import count_rows
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.row_kinds import FLAG_FRAME, FLAG_REQUISITE
from crawlerproject.rules.traps.requisite_budgets import requisite_key
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.archive.lost_captures import Discovery, LostCapture, LostPages, places_of
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage
from crawlerproject.stores.rocks.store import RocksStore

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

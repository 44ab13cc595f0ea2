"""``scrapy recover``: what a power loss or a bad disk left becomes good again, and nothing is thrown away."""

import gzip
import os
from contextlib import closing
from pathlib import Path

import pytest
from redis import Redis

from crawlerproject.errors import OperatorError
from crawlerproject.recovery import rebuild
from crawlerproject.rules.archive.warc_records import Context, Original
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.archive.capture_index import Captures
from crawlerproject.stores.crawl_dir import take_lock
from crawlerproject.stores.protocols import ARCHIVE_FACT, Changes, OpenFile, PageRecord, pack_open
from crawlerproject.stores.redis.keys import worker_keys
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.commands.running import URLS, archive, archive_of, crawl, scrapy, write
from tests.commands.test_verify import files_of, someone_elses, spoil, warc_of
from tests.stores.redis_servers import redis_server
from tests.warc_samples import STARTED_AT, exchange


def states(folder: Path, urls: list[str]) -> dict[str, str]:
    """For each URL: archived, or waiting in the frontier again, or lost."""
    store = RocksStore(folder / "frontier")
    waiting = {row.url for host in store.hosts_with_work() for row in store.head(host, 1000)}
    originals = {url: store.page(parse(url).key) for url in urls}
    store.close()
    captures = Captures([folder])
    found = {}
    for url in urls:
        archived, queued = len(captures.of_url(url)), url in waiting
        record = originals[url]
        assert record is not None
        assert (record.reason == "lost") == queued
        found[url] = "archived" if archived == 1 and not queued else "waiting" if queued and not archived else "lost"
    return found


@pytest.mark.parametrize(("closed", "at"), [(True, 0.01), (True, 0.3), (False, 0.5), (False, 0.999)])
def test_a_bad_byte_anywhere(tmp_path: Path, closed: bool, at: float) -> None:
    """Every good capture stays, the torn bytes are kept, lost pages wait again, and verify finds all well."""
    folder = tmp_path / "crawl"
    urls = crawl(folder, close=closed)
    (warc,) = (folder / "warc").iterdir()
    before = warc.read_bytes()
    spoil(warc, at)

    done = scrapy("recover", str(folder))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "bytes were cut out" in done.stdout
    verified = scrapy("verify", str(folder))
    assert verified.returncode == 0, verified.stderr
    found = list(states(folder, urls).values())
    assert found.count("lost") == 0
    assert found.count("waiting") <= 1
    assert found.count("archived") >= len(urls) - 1
    kept = sum(path.stat().st_size for name in ("warc", "torn") for path in (folder / name).iterdir())
    assert kept >= len(before)
    assert not list((folder / "warc").glob("*.torn"))
    again = scrapy("recover", str(folder))
    assert (again.returncode, "cut out" in again.stdout) == (0, False)


def test_a_page_that_comes_back_is_archived_whole(tmp_path: Path) -> None:
    """The payload of a lost capture is forgotten: the page that is fetched again is no revisit of it."""
    folder = tmp_path / "crawl"
    urls = crawl(folder)
    spoil(warc_of(folder), 0.5)
    store = RocksStore(folder / "frontier")
    digests = {url: record.digest for url in urls if (record := store.page(parse(url).key))}
    store.close()

    scrapy("recover", str(folder))

    store = RocksStore(folder / "frontier")
    forgotten = [url for url in urls if store.original(digests[url]) is None]
    store.close()
    assert forgotten == [url for url, state in states(folder, urls).items() if state == "waiting"] != []


def test_the_last_bytes_gone(tmp_path: Path) -> None:
    """A power loss that took committed bytes of the open file: cut to whole captures, the rest waits again."""
    folder = tmp_path / "crawl"
    urls = crawl(folder, close=False)
    (warc,) = (folder / "warc").iterdir()
    os.truncate(warc, warc.stat().st_size - 3000)

    done = scrapy("recover", str(folder))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "bytes were cut out" in done.stdout
    assert scrapy("verify", str(folder)).returncode == 0
    found = list(states(folder, urls).values())
    assert found.count("lost") == 0
    assert 2 <= found.count("waiting") <= 4


def test_a_revisit_whose_original_is_lost(tmp_path: Path) -> None:
    """``verify`` names its page, ``recover`` has it fetched again, and later captures do not stand on it."""
    first, second = "http://h.example.com/1", "http://h.example.com/2"
    (tmp_path / "frontier").mkdir()
    store, made = RocksStore(tmp_path / "frontier"), archive_of(tmp_path, max_bytes=1)
    changes = Changes(facts=[("clean", b"1")])
    robots = made.write(exchange(b"Disallow:"), Context(url="http://h.example.com/robots.txt", hops="P"))
    written = write(made, first)
    original = Original(written.record_id, first, written.date)
    made.warc.roll_if_full()
    made.write(exchange(), Context(url=second), written.digest, original)
    made.close()
    for url in (first, second):
        changes.pages.append((parse(url).key, PageRecord(url, "fetched", 200, STARTED_AT, written.digest)))
    changes.payloads.append((written.digest, original))
    changes.payloads.append((robots.digest, Original(robots.record_id, "http://h.example.com/robots.txt", robots.date)))
    store.apply(changes)
    store.close()
    whole = scrapy("verify", str(tmp_path))
    (tmp_path / "warc" / written.filename).unlink()

    found = scrapy("verify", str(tmp_path))
    mended = scrapy("recover", str(tmp_path))

    assert (whole.returncode, whole.stdout.endswith(": all is well\n")) == (0, True), whole.stdout
    assert "2 pages of the frontier have no capture, or a revisit of one that is not there" in found.stderr
    assert "1 revisit of responses that are not here" in found.stdout + found.stderr
    assert "2 pages whose captures are lost wait in the frontier again" in mended.stdout
    with closing(RocksStore(tmp_path / "frontier")) as store:
        assert {row.url for row in store.queue("h.example.com")} == {first, second}
        assert [store.original(each.digest) for each in (written, robots)] == [None, None]


def test_nothing_to_mend(tmp_path: Path) -> None:
    """A good folder stays as it is, byte by byte, but for the frontier's own files."""
    folder = tmp_path / "crawl"
    crawl(folder)
    before = {path: data for path, data in files_of(folder).items() if "frontier" not in path.parts}

    done = scrapy("recover", str(folder))

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{folder}: 20 good captures in 1 WARC file\n"
    assert {path: data for path, data in files_of(folder).items() if "frontier" not in path.parts} == {
        **before,
        folder / "lock": b"",
    }


def test_what_cannot_be_mended(tmp_path: Path) -> None:
    """A file that is no WARC: left as it is and said, exit status 1. Another program's in one gzip member is good."""
    folder = archive(tmp_path)
    foreign = folder / "warc" / "theirs.warc.gz"
    foreign.write_bytes(b"no gzip at all")
    other = folder / "warc" / "packed.warc.gz"
    someone_elses(other)
    other.write_bytes(gzip.compress(gzip.decompress(other.read_bytes())))
    before = {path: path.read_bytes() for path in (foreign, other)}

    done = scrapy("recover", str(folder))

    assert done.returncode == 1
    assert "theirs.warc.gz has no good record; it is left as it is" in done.stdout
    assert "Left as it is: packed.warc.gz" not in done.stderr
    assert {path: path.read_bytes() for path in before} == before


def test_a_frontier_that_is_not_made_leaves_files_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old one can be gone on with, which knows how much of them is committed: the rest counts for nothing."""
    folder = tmp_path / "crawl"
    urls = crawl(folder, close=False)
    [warc] = (folder / "warc").iterdir()
    committed = warc.stat().st_size
    made = archive_of(folder, committed=OpenFile(warc.name.removesuffix(".open"), committed))
    write(made, "http://uncommitted.example.com/")
    made.flush()
    made.abandon()

    def refused(*given: object) -> None:
        raise OperatorError("the place of the archive does not answer")

    monkeypatch.setattr(rebuild, "rebuild", refused)
    done = scrapy("recover", str(folder), "--frontier")
    assert "does not answer" in done.stderr
    assert [path.name for path in (folder / "warc").iterdir()] == [warc.name]
    assert scrapy("recover", str(folder)).returncode == 0
    assert warc.stat().st_size == committed
    assert set(states(folder, urls).values()) == {"archived"}
    assert scrapy("verify", str(folder)).returncode == 0


def test_a_running_crawl_is_left_alone(tmp_path: Path) -> None:
    """The folder's lock is respected."""
    folder = tmp_path / "crawl"
    crawl(folder)
    lock = take_lock(folder)

    done = scrapy("recover", str(folder))

    os.close(lock)
    assert done.returncode == 2
    assert "is in use by a running crawl" in done.stderr


def test_a_worker_that_never_comes_back(tmp_path: Path) -> None:
    """Its open file is cut to what Redis says is committed, closed and indexed; its name may be used again."""
    folder = tmp_path / "crawl" / "w1"
    made = archive_of(folder)
    for url in URLS:
        write(made, url)
    made.flush()
    made.warc.sync()
    committed = made.warc.state()
    write(made, "http://uncommitted.example.com/")
    made.abandon()
    (folder / "worker.json").write_text('{"worker": "w1", "crawl": "web", "life": "x", "before": []}')

    with redis_server(tmp_path / "redis") as server:
        client = Redis.from_url(server.url)
        client.hset(worker_keys("web", "w1").state, f"fact:{ARCHIVE_FACT}", pack_open(committed))
        done = scrapy("recover", str(folder), "-s", f"STATE_URL={server.url}")
        again = scrapy("recover", str(folder), "-s", f"STATE_URL={server.url}")

    assert done.returncode == 0, done.stdout + done.stderr
    assert committed is not None
    assert f"{committed.filename} is closed: {committed.length:,} bytes" in done.stdout
    assert [path.name for path in (folder / "warc").iterdir()] == [committed.filename]
    assert len(list((folder / "torn").iterdir())) == 1
    assert [len(Captures([folder]).of_url(url)) for url in URLS] == [1, 1, 1]
    assert Captures([folder]).of_url("http://uncommitted.example.com/") == []
    assert again.stdout == f"{folder}: 3 good captures in 1 WARC file\n"
    back = archive_of(folder)
    assert back.messages == []
    back.close()


def test_tails_that_an_earlier_version_left_among_the_files(tmp_path: Path) -> None:
    """They are no WARC files, and are counted as what they are once the folder is migrated."""
    folder = archive(tmp_path)
    (folder / "warc" / "crawl-x.warc.gz.open.0.torn").write_bytes(b"a tail")

    before = scrapy("verify", str(folder))
    migrated = scrapy("state", "migrate", "-s", f"CRAWL_DIR={folder}")
    done = scrapy("verify", str(folder))

    assert before.returncode == migrated.returncode == done.returncode == 0, done.stderr
    assert "1 .torn file keeps 6 bytes cut off" in done.stderr

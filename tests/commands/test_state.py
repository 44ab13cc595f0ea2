"""``scrapy state copy``: there and back, killed in the middle of each, and a crawl that goes on where it was moved."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from crawlerproject.fleet.repartition.repartition import move
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import Box, Changes, Fingerprint, PageRecord, QueuedPage
from crawlerproject.stores.redis.connection import Call, RedisLink
from crawlerproject.stores.redis.journals import PartitionJournals
from crawlerproject.stores.redis.keys import ledger_key, partition_keys
from crawlerproject.stores.redis.texts import RedisTexts
from crawlerproject.stores.rocks.rocks_store import RocksStore
from crawlerproject.stores.rocks.rocks_tables import open_to_write
from tests.commands.crawled import scrapy
from tests.crawls.fleet.fleets import Workers
from tests.stores.redis_servers import redis_server
from tests.web.judge import judge_folder
from tests.web.running import crawl_command, read_pages, small_settings, start, synthetic_web
from tests.web.waiting import wait_until
from tests.web.zygote import Process

_HOSTS = 40
_PAGES, _FEW_PAGES = 600, 60  # a host; the former where a copy must last long enough to be killed
_TABLES = ("", "queue", "seen", "pages", "hosts", "robots", "fingerprints", "payloads")
_SECONDS = 60.0
HASTY = {"FRONTIER_MAX_REST_SECONDS": "5"}


def frontier(folder: Path, pages: int = _FEW_PAGES) -> None:
    """A frontier with something in every table."""
    folder.mkdir(parents=True)
    with closing(RocksStore(folder)) as store:
        for number in range(_HOSTS):
            host, changes = f"h{number}.test", Changes()
            state = Host(host, 1.0)
            state.rows, state.known, state.next_free = pages // 2, pages, 5.0
            for page in range(pages):
                address = parse(f"http://{host}/{page}")
                row = QueuedPage(host, address.key, address.url, page % 3, page + 1, 1, "L", f"http://{host}/")
                if page % 2:
                    changes.queued.append(row)
                    continue
                digest = address.key[:20]
                changes.pages.append((address.key, PageRecord(address.url, "fetched", 200, 5.0, digest, "etag")))
                changes.payloads.append((digest, Original(f"<urn:uuid:{page:032x}>", address.url, "2026-01-01")))
                changes.fingerprints.append(Fingerprint(host, page * 2**40 + number, address.key))
            changes.hosts.append((host, state.pack()))
            changes.robots.append((f"http://{host}", b"robots"))
            changes.facts += [(f"traps/{host}", b"yields"), ("scope", b"h0.test h1.test"), ("warc", b"of this folder")]
            store.apply(changes)


def rows_of(folder: Path) -> dict[str, dict[bytes, bytes]]:
    """Everything in a frontier."""
    with closing(open_to_write(folder)) as store:
        return {table: dict(store.rows(table)) for table in _TABLES}


def killed_copy(source: str, target: str, begun: Callable[[], bool]) -> None:
    """A copy that is killed as soon as some of it is there."""
    command = [sys.executable, "-m", "scrapy", "state", "copy", source, target]
    with Process(command) as process:
        until = time.monotonic() + _SECONDS
        while not begun():  # in a hurry: the copy is a short one
            assert process.poll() is None, "it had ended before it could be killed"
            assert time.monotonic() < until
            time.sleep(0.002)
        process.kill()
    assert process.returncode == -9


def given(link: RedisLink) -> bool:
    """Whether Redis has a copy of some partition."""
    leases = [partition_keys("web", number).lease for number in range(256)]
    return any(link.many([Call("HEXISTS", [lease], ["copy"]) for lease in leases]))


def test_there_and_back(tmp_path: Path) -> None:
    """Both copies are killed and continued; what comes back is what went, but for what is the folder's own."""
    crawl, back = tmp_path / "crawl", tmp_path / "back"
    frontier(crawl / "frontier", _PAGES)
    with redis_server(tmp_path / "redis") as server, closing(RedisLink(server.url)) as link:
        killed_copy(str(crawl), server.url, lambda: given(link))
        refused = scrapy("status", "-s", f"STATE_URL={server.url}", folder=crawl)
        assert "Traceback" not in refused.stderr
        there = scrapy("state", "copy", str(crawl), server.url)
        assert there.returncode == 0, there.stderr
        assert "goes on in" in there.stderr
        assert f"{_HOSTS * _PAGES // 2:,} queued URLs" in there.stdout

        texts, last = RedisTexts(link, "web", 1), (_PAGES - 2) * 2**40
        found = texts.exchange([], [last], 3)[0]
        assert (found[0].bits, found[0].url) == (0, f"http://h0.test/{_PAGES - 2}")

        again = scrapy("state", "copy", str(crawl), server.url)
        assert (again.returncode, "already" in again.stderr) == (2, True)

        unfinished = back / "frontier.copying"
        killed_copy(
            server.url, str(back), lambda: (unfinished / "CURRENT").exists() and wal_bytes(unfinished) > 3 * 10**5
        )
        assert not (back / "frontier").exists()
        done = scrapy("state", "copy", server.url, str(back))
        assert done.returncode == 0, done.stderr
        assert "goes on behind unit" in done.stderr

    before, after = rows_of(crawl / "frontier"), rows_of(back / "frontier")
    for table in _TABLES[1:]:
        assert after[table] == before[table], table
    assert before[""].items() - after[""].items() == {(b"warc", b"of this folder")}


def test_what_several_workers_hold_is_brought_together(tmp_path: Path) -> None:
    """All of it is in Redis, and so is a message that one has written and the other has not read."""
    crawl = CrawlDir(tmp_path / "crawl")
    frontier(crawl.frontier)
    with closing(RocksStore(crawl.frontier)) as store:
        store.apply(Changes(facts=[("warc", b"")]))
    plan = move(crawl, ["worker-1", "worker-2"], lambda _: None, 16)
    theirs = min(plan.held("worker-2"))
    with closing(RocksStore(CrawlDir(crawl / "worker-1").frontier)) as sender:
        sender.apply(Changes(messages=[(theirs, b"read"), (theirs, b"unread")]))
        first = Box(theirs, sender.messages.outbox)
    with closing(RocksStore(CrawlDir(crawl / "worker-2").frontier)) as reader:
        reader.apply(Changes(read=[(first, 1)]))
    with redis_server(tmp_path / "redis") as server, closing(RedisLink(server.url)) as link:
        refused = scrapy("state", "copy", server.url, str(crawl))
        copied = scrapy("state", "copy", str(crawl), server.url)
        name = first.outbox + (2).to_bytes(8, "big")
        letters = link.call("HMGET", [ledger_key("web", theirs, cluster=False)], f"{theirs}:", b"%d:" % theirs + name)

    assert "several workers" in refused.stderr
    assert copied.returncode == 0, copied.stderr
    assert "2 workers held them, one process will" in copied.stderr
    assert f"{_HOSTS * _FEW_PAGES // 2:,} queued URLs" in copied.stdout
    behind_nothing = (0).to_bytes(8, "big")  # the one before it was read
    assert letters == [bytes(8) + name, behind_nothing + b"unread"]


def wal_bytes(folder: Path) -> int:
    """How much was written into a RocksDB so far."""
    return sum(path.stat().st_size for path in folder.glob("*.log"))


def test_an_unfinished_copy_is_not_crawled(tmp_path: Path) -> None:
    """A worker is told so, and so is a copy of a source that went on in between."""
    frontier_of = tmp_path / "crawl" / "frontier"
    frontier(frontier_of)
    with redis_server(tmp_path / "redis") as server, closing(RedisLink(server.url)) as link:
        link.call("HSET", ["{web.fleet}:facts"], "copying", "another state of the source")
        with pytest.raises(Exception, match="unfinished copy"):
            PartitionJournals(link, "web", "w", 16)
        refused = scrapy("state", "copy", str(tmp_path / "crawl"), server.url)

    assert refused.returncode == 2
    assert "was crawled since" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Give copy"),
        (("copy", "a", "b"), "Give copy"),
        (("copy", "/no/crawl", "redis://127.0.0.1:1/0"), "There is no frontier in /no/crawl"),
        (("backup", "/no/backup", "-s", "STATE_URL=redis://127.0.0.1:1/0"), "is in Redis"),
        (("restore", "/no/backup"), "holds no whole backup"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    """With exit status 2, and no traceback."""
    refused = scrapy("state", *arguments)

    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_crawl_moves_to_redis_and_back(tmp_path: Path) -> None:
    """Begun alone, continued by two workers, ended alone: to the web's log, and in the archive, one crawl."""
    crawl = tmp_path / "crawl"
    with redis_server(tmp_path / "redis") as server, synthetic_web(tmp_path / "web") as web:
        served = web.folder / "server.jsonl"
        alone = crawl_command(web.folder / "seeds.txt", crawl, web.folder / "hosts", {**small_settings(web), **HASTY})

        def pages(more: int) -> None:
            wait_until(lambda: read_pages(served) >= more, seconds=_SECONDS)

        with (tmp_path / "alone.log").open("wb") as output:
            process = start(alone, output)
            pages(60)
            process.terminate()
            assert process.wait(_SECONDS) == 0
            there = scrapy("state", "copy", str(crawl), server.url)
            assert there.returncode == 0, there.stderr
            left = start(alone, output)
            assert left.wait(_SECONDS) == 2
            fleet = Workers(web, tmp_path / "fleet", server.url, HASTY)
            fleet.start("w1", "w2")
            pages(read_pages(served) + 80)
            for name in ("w1", "w2"):
                fleet.signal(name, 15)
            fleet.wait()
            (crawl / "frontier").rename(crawl / "frontier.before")
            back = scrapy("state", "copy", server.url, str(crawl))
            assert back.returncode == 0, back.stderr
            fleet.start("w1")
            assert fleet.ended("w1") == 2
            assert start(alone, output).wait(_SECONDS) == 0
        folders = [crawl, *fleet.folders]
        fleet.close()
        verdict = judge_folder(web.folder, None, workers=folders, host_seconds=0.25, ip_seconds=0.5)

    assert verdict.faults == []
    said = (tmp_path / "alone.log").read_text()
    assert ("Traceback" in said, said.count(f"was copied to {server.url}, FLEET_CRAWL web and goes on there")) == (
        False,
        1,
    )
    assert f"{crawl} and goes on there; start it in that folder" in fleet.output("w1")

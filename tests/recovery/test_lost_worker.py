"""Workers of a fleet over Redis whose archives are lost: what stands on these is fetched again, and whole."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import orjson

from crawlerproject.recovery.lost_worker import fetch_again
from crawlerproject.rules.archive.http_messages import payload_digest
from crawlerproject.rules.archive.warc_records import Context, Original
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.archive.archive import Archive
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.protocols import ARCHIVE_FACT, Changes, PageRecord, pack_open
from crawlerproject.stores.redis.connection import RedisLink
from crawlerproject.stores.redis.journal_view import JournalView
from crawlerproject.stores.redis.keys import fleet_keys
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from tests.commands.running import archive_of
from tests.stores.journaled_crawls import PARTITIONS, host_in, journals, numbers, take
from tests.stores.redis_servers import redis_server
from tests.warc_samples import PAGE, STARTED_AT, exchange


class Worker:
    """One with an archive and a frontier of its own."""

    def __init__(self, crawl: CrawlDir, name: str, url: str, fleet: str) -> None:
        self.folder = CrawlDir(crawl / name)
        self.folder.run.parent.mkdir(parents=True, exist_ok=True)
        self.folder.run.write_bytes(orjson.dumps({"started": 1.0}))
        self.folder.worker.write_bytes(orjson.dumps({"worker": name, "crawl": fleet}))
        self.store = JournaledStore(self.folder.frontier, journals(url, name, fleet))
        self.store.journals.link.call("HSET", [fleet_keys(fleet).incarnations], name, "1")
        self.archive: Archive = archive_of(self.folder)

    def fetch(self, url: str, body: bytes) -> Original | None:
        """Archive a page, as a revisit if any worker has its payload; which one that is."""
        wire, digest = exchange(body), payload_digest(body)
        self.store.fetch_originals([digest])
        original = self.store.original(digest)
        written = self.archive.write(wire, Context(url=url, sample=body), digest, original)
        record = PageRecord(url, "fetched", 200, STARTED_AT, digest)
        changes = Changes(pages=[] if url.endswith("/robots.txt") else [(parse(url).key, record)])
        if original is None:
            changes.payloads.append((digest, Original(written.record_id, url, written.date)))
        self.archive.flush()
        self.archive.warc.sync()
        changes.facts.append((ARCHIVE_FACT, pack_open(self.archive.warc.state())))
        self.store.apply(changes)
        self.store.sync()
        return original

    def end(self) -> None:
        """In good order."""
        self.archive.close()
        self.store.apply(Changes(facts=[(ARCHIVE_FACT, b"")]))
        self.store.give_back(*self.store.journals.held)
        self.store.close()


def test_a_revisit_of_what_is_lost_is_fetched_again(tmp_path: Path) -> None:
    """As is what it stands on; its payload is stored whole then, also by a worker that had known of the lost one."""
    crawl, fleet = CrawlDir(tmp_path / "crawl"), f"lost-{next(numbers)}"
    mine = [f"http://{host_in(0, number)}/" for number in range(3)]
    given, others, robots = f"http://{host_in(2)}/", f"http://{host_in(1)}/", f"http://{host_in(3)}/robots.txt"
    bodies = [PAGE + f"<p>{number}".encode() for number in range(3)]
    with redis_server(tmp_path / "redis") as server:
        gone, kept = (Worker(crawl, name, server.url, fleet) for name in ("gone", "kept"))
        take(kept.store, 0, 2)
        take(gone.store, 1, 3)
        assert gone.fetch(others, bodies[0]) is None
        assert gone.fetch(f"{others}2", bodies[2]) is None
        assert gone.fetch(robots, b"Disallow:") is None
        assert kept.fetch(mine[0], bodies[0]) is not None  # a revisit
        assert kept.fetch(mine[1], bodies[1]) is None
        assert kept.fetch(mine[2], bodies[1]) is not None
        assert kept.fetch(given, bodies[2]) is not None
        for worker in (gone, kept):
            worker.end()
        gone.folder.rename(tmp_path / "gone")

        again = sorted([mine[0], given, others, f"{others}2"])
        with JournalView(RedisLink(server.url), fleet, PARTITIONS, {}, [kept.folder]) as view:
            assert fetch_again(crawl, view, ["gone"], lambda _: None) == again
            assert {*view.link.call("HVALS", [fleet_keys(fleet).outboxes])} == {b"kept"}

        with closing(JournaledStore(kept.folder.frontier, journals(server.url, "kept", fleet))) as store:
            digests = [payload_digest(body) for body in (*bodies, b"Disallow:")]
            store.fetch_originals(digests)
            assert [store.original(digest) is not None for digest in digests] == [False, True, False, False]
            take(store, 0)  # its copy has what its holder knew
            assert [store.original(digest) is not None for digest in digests] == [False, True, False, False]
            take(store, 1, 2, 3)
            assert sorted(row.url for host in store.hosts_with_work() for row in store.queue(host)) == again

"""The frontiers of all workers of a crawl that stands still, written as one."""

from __future__ import annotations

from contextlib import ExitStack

from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.fleet_plan import FleetPlan
from crawlerproject.stores.protocols import Changes, PageRecord
from crawlerproject.stores.rocks.frontier_folder import open_frontier
from crawlerproject.stores.rocks.store import RocksStore


class HeldStores:
    """What is known of pages goes to the holders of their hosts, what is known of the crawl to every worker."""

    def __init__(self, crawl: CrawlDir, plan: FleetPlan) -> None:
        """The locks of all folders are held. Raises OperatorError."""
        self._plan = plan
        self._stores: dict[str, RocksStore] = {}
        with ExitStack() as opened:
            for worker, folder in zip(plan.workers, plan.folders(crawl), strict=True):
                self._stores[worker] = open_frontier(folder)
                opened.callback(self._stores[worker].close)
            self._opened = opened.pop_all()

    def page(self, key: bytes, host: str) -> PageRecord | None:
        """What was known of the page when its last fate was decided; None before the first."""
        return self._stores[self._plan.holder(host)].page(key)

    def original(self, digest: bytes) -> Original | None:
        """The first capture of the payload with this sha1, in any worker's archive."""
        found = (store.original(digest) for store in self._stores.values())
        return next((original for original in found if original is not None), None)

    def apply(self, changes: Changes) -> None:
        """Apply pages, payloads and facts, in each frontier atomically; again without harm. StorageError."""
        parts = {worker: Changes(facts=changes.facts) for worker in self._stores}
        for key, record in changes.pages:
            parts[self._plan.holder(host_key(record.url))].pages.append((key, record))
        for digest, original in changes.payloads:
            assert original is not None
            parts[self._plan.holder(host_key(original.url))].payloads.append((digest, original))
        for worker, part in parts.items():
            if part:
                self._stores[worker].apply(part)

    def sync(self) -> None:
        """Make everything applied so far survive a power loss. StorageError."""
        for store in self._stores.values():
            store.sync()

    def close(self) -> None:
        """Let go of all folders."""
        self._opened.close()

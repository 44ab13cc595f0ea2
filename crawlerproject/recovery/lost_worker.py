"""Workers of a fleet over Redis that are lost with their disks: their pages are done there, and archived nowhere.

Redis does not know which worker archived a page. So every page that the frontier takes for archived is looked for in
the archives of all others; what is in none of them is queued again, as is a revisit of what is in none of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from tempfile import TemporaryDirectory
from uuid import uuid4

from crawlerproject.errors import OperatorError
from crawlerproject.frontier.hosts.on_disk import count_rows
from crawlerproject.inspection.verification import Captured, Verification
from crawlerproject.stores.archive.recovery import LostCapture, LostPages
from crawlerproject.stores.copy.copying import end, journals_of, take_all
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import folders_of
from crawlerproject.stores.protocols import Changes
from crawlerproject.stores.redis.journal_view import JournalView
from crawlerproject.stores.redis.keys import LOSSES, fleet_keys
from crawlerproject.stores.redis.rejoining import Rejoining
from crawlerproject.stores.rocks.journaled_store import JournaledStore
from crawlerproject.stores.row_codec import unpack_original

_WORKER = "recover"
_LEASE_MS = 60_000
# Pages that are queued by one change.
_AT_A_TIME = 1_000


def give_up(frontier: JournalView, lost: Sequence[str]) -> list[str]:
    """Where Redis has lost data, and waits for workers to give it again what they have: wait for no ``lost`` one, of
    which Redis has what it had before. Those that it waited for.
    """
    rejoining = Rejoining(frontier.link, frontier.crawl, _WORKER)
    pending = rejoining.look()
    waited_for = [name for name in lost if pending is not None and name in pending.missing]
    for name in waited_for:
        rejoining.give_up(name)
    return waited_for


def fetch_again(
    folder: CrawlDir, frontier: JournalView, lost: Sequence[str], progress: Callable[[int], None]
) -> list[str]:
    """Queue the pages that no archive in ``folder`` has; which they were.

    The workers ``lost`` are given up, but for those that have a folder there: a part of their archive is lost, or
    another machine goes by their name.

    ``progress`` gets the bytes of WARC files read. May be called again when it was interrupted. Raises OperatorError
    while a worker is at work, when the archive of another one is not in ``folder`` or at ARCHIVE_URL, and where Redis
    has lost data that workers have not given it again.
    """
    here = {each.name for each in folders_of(folder)}
    joined = frontier.workers_ever()
    elsewhere = [name for name in joined if name not in here]
    for name in lost:
        if name not in joined:
            raise OperatorError(f"No worker {name!r} has joined the crawl {frontier.crawl!r}.")
    if others := [name for name in elsewhere if name not in lost]:
        raise OperatorError(
            f"The archives of {', '.join(others)} are not in {folder}: what they hold would be fetched again. "
            "Copy their folders there first, or name those that are lost, too."
        )
    journals = journals_of(frontier.link, frontier.crawl, _WORKER)
    with TemporaryDirectory(prefix="frontier-") as place, closing(JournaledStore(place, journals)) as store:
        take_all(store, _LEASE_MS)

        def advance(count: int) -> None:
            journals.keep(_LEASE_MS)
            progress(count)

        look = Verification(folder, advance)
        look.run(frontier)
        logs = [each.log for each in folders_of(folder)]
        again = LostPages(store, folder.log, time.time(), count_rows, other_logs=logs)
        for changes in _forgetting(store, look.captured):
            store.apply(changes)
            store.sync()
            journals.keep(_LEASE_MS)
        for first in range(0, len(look.lost), _AT_A_TIME):
            some = look.lost[first : first + _AT_A_TIME]
            again.fetch_again([LostCapture(record.url, record.digest) for record in some])
            store.sync()
            journals.keep(_LEASE_MS)
        end(journals)
        keys = fleet_keys(frontier.crawl)
        frontier.link.call("HSET", [keys.facts], LOSSES, uuid4().hex)
        # Workers that never come back: their archives are asked for no more.
        for name in lost:
            if name in here:
                continue
            frontier.link.call("HDEL", [keys.incarnations], name)
            frontier.link.call("ZREM", [keys.seen], name)
            journals.name_outboxes((), name)
    return sorted(record.url for record in look.lost)


def _forgetting(store: JournaledStore, captured: Captured) -> Iterator[Changes]:
    """First captures that are in no archive are forgotten in Redis, and wherever a page has their payload."""
    lost = set[bytes]()
    for known in store.journals.every_original():
        lost.update(captured.lost((digest, unpack_original(packed)) for digest, packed in known.items()))
    originals = store.originals()  # Redis may have forgotten some of them
    while rows := list(islice(originals, _AT_A_TIME)):
        lost.update(captured.lost(rows))
    pages = ((key, record) for key, record in store.pages() if record.digest in lost)
    while some := list(islice(pages, _AT_A_TIME)):
        yield Changes(pages=some, payloads=[(record.digest, None) for _, record in some])
    digests = iter(lost)
    while each := list(islice(digests, _AT_A_TIME)):
        yield Changes(payloads=[(digest, None) for digest in each])

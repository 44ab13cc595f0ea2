"""A worker of a fleet in Redis that was lost with its disk: its pages are done there, and archived nowhere.

Redis does not know which worker archived a page. So every page that the frontier takes for archived is looked for in
the archives of all others; what is in none of them is queued again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from crawlerproject.errors import OperatorError
from crawlerproject.frontier.hosts.on_disk import count_rows
from crawlerproject.inspection.verification import Verification
from crawlerproject.stores.archive.recovery import LostCapture, LostPages
from crawlerproject.stores.copy.compare import HeldStore
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import folders_of
from crawlerproject.stores.redis.buffer.buffered_store import BufferedStore
from crawlerproject.stores.redis.redis_reader import RedisView

# Pages that are queued by one change.
_AT_A_TIME = 1_000


def fetch_again(folder: CrawlDir, frontier: RedisView, lost: str, progress: Callable[[int], None]) -> list[str]:
    """Queue the pages that no archive in ``folder`` has, and give the worker ``lost`` up; which they were.

    ``progress`` gets the bytes of WARC files read. May be called again when it was interrupted. Raises OperatorError
    while a worker is at work, or when the archive of another one is not in ``folder`` or at ARCHIVE_URL.
    """
    here = {each.name for each in folders_of(folder)}
    elsewhere = [name for name in frontier.workers_ever() if name not in here]
    if lost in here:
        raise OperatorError(
            f"{folder / lost} is there: scrapy recover {folder / lost} mends it. If its archive is worth nothing, "
            "move it away first."
        )
    if lost not in elsewhere:
        raise OperatorError(f"No worker {lost!r} has joined the crawl {frontier.crawl!r} that is not in {folder}.")
    if others := [name for name in elsewhere if name != lost]:
        raise OperatorError(
            f"The archives of {', '.join(others)} are not in {folder}: what they hold would be fetched again. "
            "Copy their folders there first."
        )
    store = HeldStore(frontier.link, frontier.crawl, frontier.partitions)

    def advance(count: int) -> None:
        store.keep()
        progress(count)

    look = Verification(folder, advance)
    look.run(store)
    changed = BufferedStore(store)
    logs = [each.log for each in folders_of(folder)]
    again = LostPages(changed, folder.log, time.time(), count_rows, other_logs=logs)
    for first in range(0, len(look.lost), _AT_A_TIME):
        store.keep()
        some = look.lost[first : first + _AT_A_TIME]
        again.fetch_again([LostCapture(record.url, record.digest) for record in some])
        changed.sync()
    store.release(list(store.held))
    store.give_up(lost)
    return sorted(record.url for record in look.lost)

"""Whether Redis still knows what it has answered for. When it does not, that is damage, and no reason to begin again.

A server that comes back empty, with a snapshot from before or as a replica that lacks the last batches knows less than
the workers' archives hold. What was archived would be fetched a second time, and the open WARC files cut back to what
the server knows of them. So every worker stops: the one that notices leaves a mark, which the others find with their
next report, and every start finds until the operator has decided.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from typing import NamedTuple

from crawlerproject.errors import OperatorError, StorageError, StoreForgot
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.redis.connection import SCHEMES, RedisLink
from crawlerproject.stores.redis.journal_scripts import BEGIN
from crawlerproject.stores.redis.keys import CRAWL_ID, FORGOT, MOVED, REPORTS, fleet_keys, worker_keys
from crawlerproject.stores.redis.scripts import script
from crawlerproject.stores.redis.worker_log import log_keys

# KEYS facts; ARGV the id of before, another one
_RENAME = script(
    """
if redis.call('HGET', KEYS[1], 'id') == ARGV[1] then redis.call('HSET', KEYS[1], 'id', ARGV[2]) end
return 1
"""
)


class Answered(NamedTuple):
    """What Redis has answered for to one worker, as that one's folder remembers it."""

    crawl_id: str = ""  # "": of a version that gave the crawl none (before 1.8.0), or of a worker that never began
    serial: int = 0  # of its last batch
    reports: int = 0  # of all workers: those that had nothing to write know by it as well
    began: bool = False  # whether the worker has ever joined this crawl


def forgotten(link: RedisLink, crawl: str, what: str) -> StoreForgot:
    """The error to raise, with a mark for the other workers; ``what`` is missing, as the end of a sentence."""
    detail = f"{link.place} {what}"
    with contextlib.suppress(StorageError):
        link.call("HSET", [fleet_keys(crawl).facts], FORGOT, detail)
    return _error(crawl, detail)


def stopped(link: RedisLink, crawl: str) -> StoreForgot:
    """The error for a worker that another one's mark stops, or that Redis does not know any more. StorageError."""
    mark = link.call("HGET", [fleet_keys(crawl).facts], FORGOT)
    if mark is not None:
        return _error(crawl, mark.decode(errors="replace"))
    return forgotten(link, crawl, f"does not know this worker of the crawl {crawl!r}")


def recognise(link: RedisLink, crawl: str, worker: str, answered: Answered, *, accept: bool) -> Answered:
    """What Redis answers for now; the crawl gets its id from the first worker that joins it. StorageError.

    Raises StoreForgot when it knows less than ``answered``, OperatorError when the crawl has moved into a folder;
    neither when the operator accepts that. A crawl that goes on after a loss has another id.
    """
    facts, state = fleet_keys(crawl).facts, worker_keys(crawl, worker).state
    known, crawl_id, mark, counted, moved = link.call("HMGET", [facts], "format", CRAWL_ID, FORGOT, REPORTS, MOVED)
    serial, reports = int(link.call("HGET", [state], "serial") or 0), int(counted or 0)
    lost = ""
    if answered.began and known is None:
        lost = f"knows nothing of the crawl {crawl!r}"
    elif answered.crawl_id and crawl_id != answered.crawl_id.encode():
        lost = f"holds another crawl of the name {crawl!r}"
    elif serial < answered.serial:
        lost = f"knows {serial} of the {answered.serial} batches of worker {worker!r}"
    elif reports < answered.reports:
        lost = f"knows {reports:,} of the {answered.reports:,} reports of the workers"
    if accept:
        link.call("HDEL", [facts], FORGOT, MOVED)
        # What another worker missed (keys that were thrown away, say) may be nothing of this one's.
        if before := crawl_id if mark is not None else answered.crawl_id if lost else "":
            link.call(_RENAME, [facts], before, uuid.uuid4().hex)
    elif moved is not None:
        raise OperatorError(
            f"The crawl {crawl!r} at {link.place} was copied to {moved.decode(errors='replace')} and goes on there; "
            "start it in that folder. If that copy is given up, add -a accept=store."
        )
    elif mark is not None:
        raise stopped(link, crawl)
    elif lost:
        raise forgotten(link, crawl, lost)
    link.call("HSETNX", [facts], CRAWL_ID, uuid.uuid4().hex)
    return Answered(link.call("HGET", [facts], CRAWL_ID).decode(), serial, reports, began=True)


def _error(crawl: str, detail: str) -> StoreForgot:
    return StoreForgot(
        f"{detail}: it has lost what it had answered for, so every worker of the crawl {crawl!r} stops and leaves its "
        "archive and its frontier as they are; give Redis its data back, or start every worker once with "
        "-a accept=store: then Redis is given again what they have."
    )


def lost_some(crawl: str) -> OperatorError:
    """What a command says that would take for the whole crawl what Redis has left of it."""
    return OperatorError(
        f"Redis has lost some of what it knew of the crawl {crawl!r}: give it its data back, or start every worker "
        "once with -a accept=store and wait until they go on; then run this again."
    )


def fact_of_worker(folder: CrawlDir, url: str, name: str) -> bytes | None:
    """A fact of the worker whose folder this is. A process that still goes by its name can commit nothing from now on.

    Raises OperatorError when ``url`` is no Redis, the folder no worker's, or Redis knows less than it has answered for.
    """
    if not url.startswith(SCHEMES):
        raise OperatorError(f"{folder} is a worker's folder: give the crawl's Redis with -s STATE_URL=redis://…")
    try:
        left = json.loads(folder.worker.read_text())
        keys = log_keys(left["crawl"], left["worker"])
    except (OSError, ValueError, KeyError) as error:
        raise OperatorError(f"{folder.worker} cannot be read ({error}); it names the worker.") from error
    link = RedisLink(url)
    try:
        known, mark = link.call("HMGET", [fleet_keys(left["crawl"]).facts], CRAWL_ID, FORGOT)
        serial, crawl_id = int(link.call("HGET", [keys.state], "serial") or 0), left.get("crawl_id", "")
        if mark is not None or serial < left.get("serial", 0) or (crawl_id and known != crawl_id.encode()):
            raise lost_some(left["crawl"])
        link.call(BEGIN, [keys.state, keys.fenced], uuid.uuid4().hex)
        value: bytes | None = link.call("HGET", [keys.state], f"fact:{name}")
        return value
    finally:
        link.close()

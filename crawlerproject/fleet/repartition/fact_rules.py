"""What becomes of each fact that is known of the crawl as a whole, or of one frontier, when partitions move.

Facts of hosts go with their hosts (``stores/protocols.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum, auto
from functools import partial
from operator import itemgetter
from typing import NamedTuple

import orjson

from crawlerproject.fleet.repartition.journal import PlanChange
from crawlerproject.frontier.hosts.on_disk import Counts
from crawlerproject.frontier.known_seeds import COMBINED
from crawlerproject.frontier.learned.subscriptions import HUBS_FACT
from crawlerproject.frontier.other_workers import (
    Changed,
    Links,
    Message,
    RobotsGiven,
    RobotsWanted,
    pack_message,
    unpack_message,
)
from crawlerproject.rules.url.urls import host_key
from crawlerproject.stores.crawl_folders import FleetPlan
from crawlerproject.stores.protocols import ARCHIVE_FACT, DUE_FACT, GIVEN_ARCHIVE_FACT
from crawlerproject.stores.rocks.frontier_folder import CLEAN_FACT, IMPORTED_FACT
from crawlerproject.stores.rocks.partition_rows import MARK_FACT
from crawlerproject.stores.rocks.rocks_store import UNREAD_FACT
from crawlerproject.stores.row_codec import FORMAT_FACT

UNREAD_PREFIX = f"{UNREAD_FACT}/"
"""Of the facts that hold messages; their numbers follow."""
# Messages in one fact: each a few hundred bytes to some KB.
_MESSAGES_AT_A_TIME = 1000


class FactMove(Enum):
    """Where a fact is afterwards."""

    OWN = auto()  # where it was: it is about that folder and nothing else
    ALL = auto()  # with every worker, of all workers together
    ONE = auto()  # where it was; that of a worker who holds nothing any more is added to the first one's
    FIRST = auto()  # with the first worker, of all workers together


class Rule(NamedTuple):
    """Where a fact goes to, and what several of them make, of the first worker first."""

    goes: FactMove
    join: Callable[[list[bytes]], bytes] = itemgetter(0)
    empty: bytes = b""  # with FactMove.FIRST: what the others have of it


def _sums(kept: list[bytes]) -> bytes:
    """Pages, bytes, errors; since when."""
    *counts, since = zip(*map(orjson.loads, kept), strict=True)
    return orjson.dumps((*map(sum, counts), min(since)))


def _subscriptions(kept: list[bytes]) -> bytes:
    """Lists that begin with the topic."""
    rows = [row for one in reversed(kept) for row in orjson.loads(one)]
    return orjson.dumps([*{row[0]: row for row in rows}.values()])


RULES = {
    FORMAT_FACT: Rule(FactMove.OWN),
    ARCHIVE_FACT: Rule(FactMove.OWN),  # none is open: ``close_archive``
    GIVEN_ARCHIVE_FACT: Rule(FactMove.OWN),  # stores/rocks/journaled_store.py: a worker's over Redis
    "copied": Rule(FactMove.OWN),  # stores/copy: where the frontier came from
    "copied from": Rule(FactMove.OWN),
    DUE_FACT: Rule(FactMove.OWN),  # counted again: ``copying``; here only whether all hosts with work are listed
    CLEAN_FACT: Rule(FactMove.ALL),  # ``_clean``
    IMPORTED_FACT: Rule(FactMove.ALL),
    "unsure-until": Rule(FactMove.ALL, partial(max, key=float)),  # frontier/frontier_state.py
    "clock": Rule(FactMove.ALL, partial(max, key=float)),  # frontier/hosts/table.py
    **{name: Rule(FactMove.ALL, join) for name, join in COMBINED.items() if name != HUBS_FACT},  # seeds and scope
    "totals": Rule(FactMove.ONE, _sums),  # crawl/run.py
    "renders": Rule(FactMove.ONE, lambda kept: b"%d" % sum(map(int, kept))),  # frontier/learned/render_gains.py
    "texts": Rule(FactMove.OWN),  # fleet/text_questions.py; what it may lack is found again (fleet/local/content.py)
    "websub": Rule(FactMove.FIRST, _subscriptions, b"[]"),  # frontier/learned/subscriptions.py
    HUBS_FACT: Rule(FactMove.FIRST, COMBINED[HUBS_FACT], b"{}"),
    UNREAD_FACT: Rule(FactMove.OWN),  # ``_letters``
    MARK_FACT: Rule(FactMove.OWN),  # stores/rocks/journaled_store.py: of a crawl that came from Redis, worth nothing
}
"""By name; every fact of the code has a line (a test says so)."""
_OF_ANOTHER_VERSION = Rule(FactMove.ONE)


def rule_of(name: str) -> Rule:
    """What becomes of a fact."""
    prefix = next((each for each in (UNREAD_FACT, MARK_FACT) if name.startswith(each)), name)
    return RULES.get(prefix, _OF_ANOTHER_VERSION)


Known = dict[str, dict[str, bytes]]
"""By worker and name: facts that are not of hosts."""


def joined(known: Known, shift: PlanChange) -> Iterator[tuple[str, dict[str, bytes]]]:
    """What each worker of the new plan will have. ``known``: of every worker of the old plan that has a frontier."""
    workers = shift.after.workers
    names = sorted({name for facts in known.values() for name in facts if not name.startswith(UNREAD_PREFIX)})
    letters = _letters(known, shift.after)
    for worker in workers:
        facts: dict[str, bytes] = {}
        for name in names:
            rule = rule_of(name)
            kept = [found[name] for one, found in known.items() if name in found and _comes(rule, one, worker, workers)]
            if kept:
                facts[name] = rule.join(kept) if len(kept) > 1 else kept[0]
            elif rule.goes is FactMove.FIRST and name in known.get(worker, {}):
                facts[name] = rule.empty
        givers = [known[giver] for giver in shift.givers_of(worker) if giver in known]
        _clean(facts, givers or list(known.values()))
        if worker in redivided(shift):
            _whole(facts, givers)
        yield worker, facts | letters[worker]


def redivided(shift: PlanChange) -> set[str]:
    """The workers of the new plan that have other partitions than before."""
    before, after = shift.before, shift.after
    kept = {
        worker for worker in before.workers if worker in after.workers and before.held(worker) == after.held(worker)
    }
    return set(after.workers) - kept


def _comes(rule: Rule, one: str, worker: str, workers: Sequence[str]) -> bool:
    """Whether what ``one`` knows becomes part of what ``worker`` will know."""
    if rule.goes is FactMove.FIRST:
        return worker == workers[0]
    if rule.goes is FactMove.ALL or one == worker:
        return True
    return rule.goes is FactMove.ONE and worker == workers[0] and one not in workers


def _clean(facts: dict[str, bytes], givers: Iterable[dict[str, bytes]]) -> None:
    """One that died may have asked any of its hosts without a trace, so the holders of these begin as after a crash."""
    ends = [found[CLEAN_FACT] for found in givers if CLEAN_FACT in found]
    if ends:
        facts[CLEAN_FACT] = min(ends)


def _whole(facts: dict[str, bytes], givers: Sequence[dict[str, bytes]]) -> None:
    """Hosts with work are all listed where all that came were; ``tidy_lists`` sums up the rest."""
    lists = [found.get(DUE_FACT) for found in givers]
    facts.pop(DUE_FACT, None)
    if any(lists):
        facts[DUE_FACT] = Counts(whole=all(Counts.unpack(each).whole for each in lists)).pack()


# --- letters ------------------------------------------------------------------------------------


def _letters(known: Known, plan: FleetPlan) -> dict[str, dict[str, bytes]]:
    """Messages that no start has read yet (stores/copy/copying.py), each with the holder of what it is about."""
    read: dict[str, list[bytes]] = {worker: [] for worker in plan.workers}
    for one in known.values():
        for number in range(int(one.get(UNREAD_FACT) or 0)):
            for packed in orjson.loads(one.get(f"{UNREAD_PREFIX}{number}") or b"[]"):
                for worker, message in _shared_out(unpack_message(orjson.dumps(packed)), plan):
                    read[worker].append(pack_message(message))
    if not any(UNREAD_FACT in one for one in known.values()):
        return {worker: {} for worker in plan.workers}
    facts: dict[str, dict[str, bytes]] = {}
    for worker, waiting in read.items():
        slices = [waiting[start : start + _MESSAGES_AT_A_TIME] for start in range(0, len(waiting), _MESSAGES_AT_A_TIME)]
        facts[worker] = {UNREAD_FACT: b"%d" % len(slices)}
        facts[worker] |= {f"{UNREAD_PREFIX}{n}": b"[" + b",".join(some) + b"]" for n, some in enumerate(slices)}
    return facts


def _shared_out(message: Message, plan: FleetPlan) -> Iterator[tuple[str, Message]]:
    if isinstance(message, Links):
        for worker in plan.workers:
            if found := [item for item in message.found if plan.holder(item.address.host) == worker]:
                yield worker, Links(found)
    elif isinstance(message, Changed):
        for worker in plan.workers:
            if pages := [page for page in message.pages if plan.holder(page[0].host) == worker]:
                yield worker, Changed(pages)
    elif isinstance(message, RobotsWanted):
        yield plan.holder(host_key(message.target)), message
    else:
        assert isinstance(message, RobotsGiven)
        yield plan.holder(message.origin.rpartition("://")[2]), message

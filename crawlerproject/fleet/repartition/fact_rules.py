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
from crawlerproject.frontier import other_workers
from crawlerproject.frontier.hosts.on_disk import Counts
from crawlerproject.frontier.known_seeds import COMBINED, HUBS_FACT
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

    STAYS = auto()  # where it was: it is about that folder and nothing else
    WITH_ALL = auto()  # with every worker, of all workers together
    STAYS_OR_FIRST = auto()  # where it was; that of a worker who holds nothing any more is added to the first one's
    WITH_FIRST = auto()  # with the first worker, of all workers together


class Rule(NamedTuple):
    """Which workers have a fact afterwards, and what several of them make, of the first worker first."""

    move: FactMove
    join: Callable[[list[bytes]], bytes] = itemgetter(0)
    empty: bytes = b""  # with FactMove.WITH_FIRST: what the others have of it


def _sums(kept: list[bytes]) -> bytes:
    """Pages, bytes, errors; since when."""
    *counts, since = zip(*map(orjson.loads, kept), strict=True)
    return orjson.dumps((*map(sum, counts), min(since)))


def _subscriptions(kept: list[bytes]) -> bytes:
    """Lists that begin with the topic."""
    rows = [row for one in reversed(kept) for row in orjson.loads(one)]
    return orjson.dumps([*{row[0]: row for row in rows}.values()])


RULES = {
    FORMAT_FACT: Rule(FactMove.STAYS),
    ARCHIVE_FACT: Rule(FactMove.STAYS),  # none is open: ``close_archive``
    GIVEN_ARCHIVE_FACT: Rule(FactMove.STAYS),  # stores/rocks/giving_store.py: a worker's over Redis
    "copied": Rule(FactMove.STAYS),  # stores/copy: where the frontier came from
    "copied from": Rule(FactMove.STAYS),
    DUE_FACT: Rule(FactMove.STAYS),  # counted again: ``copying``; here only whether all hosts with work are listed
    CLEAN_FACT: Rule(FactMove.WITH_ALL),  # ``_join_clean``
    IMPORTED_FACT: Rule(FactMove.WITH_ALL),
    "unsure-until": Rule(FactMove.WITH_ALL, partial(max, key=float)),  # frontier/frontier_state.py
    "clock": Rule(FactMove.WITH_ALL, partial(max, key=float)),  # frontier/hosts/table.py
    **{
        name: Rule(FactMove.WITH_ALL, together) for name, together in COMBINED.items() if name != HUBS_FACT
    },  # seeds and scope
    "totals": Rule(FactMove.STAYS_OR_FIRST, _sums),  # crawl/run.py
    "renders": Rule(
        FactMove.STAYS_OR_FIRST, lambda kept: b"%d" % sum(map(int, kept))
    ),  # frontier/learned/render_gains.py
    "texts": Rule(FactMove.STAYS),  # fleet/text_questions.py; fleet/local/local_fleet.py finds again what it may lack
    "websub": Rule(FactMove.WITH_FIRST, _subscriptions, b"[]"),  # frontier/learned/subscriptions.py
    HUBS_FACT: Rule(FactMove.WITH_FIRST, COMBINED[HUBS_FACT], b"{}"),
    UNREAD_FACT: Rule(FactMove.STAYS),  # ``_unread_messages``
    MARK_FACT: Rule(FactMove.STAYS),  # stores/rocks/journaled_store.py: of a crawl that came from Redis, worth nothing
}
"""By name; every fact of the code has a line (a test says so)."""
_OF_ANOTHER_VERSION = Rule(FactMove.STAYS_OR_FIRST)


def rule_of(name: str) -> Rule:
    """What becomes of a fact."""
    prefix = next((each for each in (UNREAD_FACT, MARK_FACT) if name.startswith(each)), name)
    return RULES.get(prefix, _OF_ANOTHER_VERSION)


def join(name: str, kept: list[bytes]) -> bytes:
    """One value of a fact from those of several workers, of the first worker first."""
    return rule_of(name).join(kept) if len(kept) > 1 else kept[0]


Known = dict[str, dict[str, bytes]]
"""By worker and name: facts that are not of hosts."""


def joined(known: Known, change: PlanChange) -> Iterator[tuple[str, dict[str, bytes]]]:
    """What each worker of the new plan will have. ``known``: of every worker of the old plan that has a frontier."""
    workers = change.after.workers
    names = sorted({name for facts in known.values() for name in facts if not name.startswith(UNREAD_PREFIX)})
    unread = _unread_messages(known, change.after)
    for worker in workers:
        facts: dict[str, bytes] = {}
        for name in names:
            rule = rule_of(name)
            kept = [
                found[name]
                for one, found in known.items()
                if name in found and _contributes(rule, one, worker, workers)
            ]
            if kept:
                facts[name] = join(name, kept)
            elif rule.move is FactMove.WITH_FIRST and name in known.get(worker, {}):
                facts[name] = rule.empty
        givers = [known[giver] for giver in change.givers_of(worker) if giver in known]
        _join_clean(facts, givers or list(known.values()))
        if worker in workers_that_change(change):
            _join_due(facts, givers)
        yield worker, facts | unread[worker]


def workers_that_change(change: PlanChange) -> set[str]:
    """The workers of the new plan that have other partitions than before."""
    before, after = change.before, change.after
    kept = {
        worker for worker in before.workers if worker in after.workers and before.held(worker) == after.held(worker)
    }
    return set(after.workers) - kept


def _contributes(rule: Rule, one: str, worker: str, workers: Sequence[str]) -> bool:
    """Whether what ``one`` knows becomes part of what ``worker`` will know."""
    if rule.move is FactMove.WITH_FIRST:
        return worker == workers[0]
    if rule.move is FactMove.WITH_ALL or one == worker:
        return True
    return rule.move is FactMove.STAYS_OR_FIRST and worker == workers[0] and one not in workers


def _join_clean(facts: dict[str, bytes], givers: Iterable[dict[str, bytes]]) -> None:
    """One that died may have asked any of its hosts without a trace, so the holders of these begin as after a crash."""
    ends = [found[CLEAN_FACT] for found in givers if CLEAN_FACT in found]
    if ends:
        facts[CLEAN_FACT] = min(ends)


def _join_due(facts: dict[str, bytes], givers: Sequence[dict[str, bytes]]) -> None:
    """Hosts with work are all listed where all that came were; ``tidy_lists`` sums up the rest."""
    lists = [found.get(DUE_FACT) for found in givers]
    facts.pop(DUE_FACT, None)
    if any(lists):
        facts[DUE_FACT] = Counts(whole=all(Counts.unpack(each).whole for each in lists)).pack()


# --- messages that no start has read -----------------------------------------------------------


def _unread_messages(known: Known, plan: FleetPlan) -> dict[str, dict[str, bytes]]:
    """Messages that no start has read yet (stores/copy/copying.py), each with the holder of what it is about."""
    read: dict[str, list[bytes]] = {worker: [] for worker in plan.workers}
    for one in known.values():
        for number in range(int(one.get(UNREAD_FACT) or 0)):
            for packed in orjson.loads(one.get(f"{UNREAD_PREFIX}{number}") or b"[]"):
                for worker, message in _by_holder(other_workers.unpack_message(orjson.dumps(packed)), plan):
                    read[worker].append(other_workers.pack_message(message))
    if not any(UNREAD_FACT in one for one in known.values()):
        return {worker: {} for worker in plan.workers}
    facts: dict[str, dict[str, bytes]] = {}
    for worker, waiting in read.items():
        slices = [waiting[start : start + _MESSAGES_AT_A_TIME] for start in range(0, len(waiting), _MESSAGES_AT_A_TIME)]
        facts[worker] = {UNREAD_FACT: b"%d" % len(slices)}
        facts[worker] |= {f"{UNREAD_PREFIX}{n}": b"[" + b",".join(some) + b"]" for n, some in enumerate(slices)}
    return facts


def _by_holder(message: other_workers.Message, plan: FleetPlan) -> Iterator[tuple[str, other_workers.Message]]:
    if isinstance(message, other_workers.Links):
        for worker in plan.workers:
            if found := [item for item in message.found if plan.holder(item.address.host) == worker]:
                yield worker, other_workers.Links(found)
    elif isinstance(message, other_workers.Changed):
        for worker in plan.workers:
            if pages := [page for page in message.pages if plan.holder(page[0].host) == worker]:
                yield worker, other_workers.Changed(pages)
    elif isinstance(message, other_workers.RobotsWanted):
        yield plan.holder(host_key(message.target)), message
    else:
        assert isinstance(message, other_workers.RobotsGiven)
        yield plan.holder(message.origin.rpartition("://")[2]), message

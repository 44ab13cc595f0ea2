"""Pages that are visited again: how they are asked for, what their answers leave behind."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from crawlerproject.frontier.learned.revisits import Revisits
from crawlerproject.frontier.passage import Visit
from crawlerproject.reasons import Reason
from crawlerproject.rules.revisits.history import DAY_SECONDS, FEED, REQUISITE, SITEMAP, History
from crawlerproject.rules.row_kinds import (
    FLAG_EXTERNAL,
    FLAG_FRAME,
    FLAG_HUB,
    FLAG_RECRAWL,
    FLAG_REQUISITE,
    FLAG_ROBOTS,
    FLAG_SITEMAP,
    requisite_key,
)
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage
from tests.stores.memory_store import MemoryStore

URL = "http://a.example/page"
OLD = PageRecord(URL, "fetched", 200, 100.0, b"d" * 20, '"v1"', "", History(visits=1, seen_at=100.0).pack())


def revisits(check_share: float = 0.0, record: PageRecord | None = OLD) -> Revisits:
    """Over a store that knows the page."""
    store = MemoryStore()
    if record is not None:
        store.apply(Changes(pages=[(parse(URL).key, record)]))
    return Revisits(store, random.Random(1), near_bits=3, check_share=check_share)


def row(flags: int = FLAG_RECRAWL, hops: str = "LL") -> QueuedPage:
    """The page's row."""
    return QueuedPage("a.example", parse(URL).key, URL, 2, 1, 2, hops, "", 0, flags, "http://origin.example")


def test_a_known_page_is_asked_for_with_its_validators() -> None:
    """As a revisit only: a link to it asks for nothing."""
    assert revisits().headers(row()) == {"If-None-Match": b'"v1"'}
    assert revisits().headers(row(flags=0)) == {}
    assert revisits(record=None).headers(row()) == {}


@pytest.mark.parametrize("unfit", ["*", '"a\x07b"', "a" * 60_000])
def test_what_is_not_sent_back_is_not_stored(unfit: str) -> None:
    """Neither of a first visit nor of a 304, which leaves the old one; nor sent from a crawl that stored it."""
    first = revisits(record=None).learn(Visit(row(flags=0), Reason.FETCHED, 200, b"d" * 20, etag=unfit), 200.0)
    assert first.etag == ""
    again = revisits().learn(Visit(row(), Reason.NOT_MODIFIED, 304, etag=unfit, last_modified=unfit), 200.0)
    assert (again.etag, again.last_modified) == ('"v1"', "")
    assert revisits(record=OLD._replace(etag=unfit)).headers(row()) == {}


def test_pages_are_asked_for_in_full_once_more_is_allowed() -> None:
    """Those whose last visit was before: what they name was judged by the rules of then."""
    learning = revisits()
    learning.rules_loosened("a.example", OLD.fetched_at - 1)
    assert learning.headers(row())

    learning.rules_loosened("a.example", OLD.fetched_at + 1)
    assert learning.headers(row()) == {}


def test_a_share_of_requests_is_sent_in_full() -> None:
    """To see whether a 304 would have been true."""
    checking = revisits(check_share=0.25)

    sent = [bool(checking.headers(row())) for _ in range(400)]

    assert 60 <= sent.count(False) <= 140


def test_a_host_whose_validators_lie_is_asked_in_full() -> None:
    """Its payload changed twice while its ETag stayed."""
    learning = revisits()
    for digest in (b"e" * 20, b"f" * 20):
        learning.learn(Visit(row(), Reason.FETCHED, 200, digest, etag='"v1"'), 200.0)

    assert learning.headers(row()) == {}


def test_a_304_leaves_the_archived_content_and_takes_newer_validators() -> None:
    """RFC 9110 15.4.5."""
    record = revisits().learn(Visit(row(), Reason.NOT_MODIFIED, 304, etag='"v2"'), 200.0)

    assert (record.digest, record.etag, record.status) == (OLD.digest, '"v2"', 304)
    assert History.unpack(record.history)[2:4] == (2, 200.0)  # visits, seen_at


@pytest.mark.parametrize("status", [500, 304])
def test_an_error_leaves_what_was_archived(status: int) -> None:
    """Its digest and validators stand; the page has not been seen. A 304 that was not asked for is one."""
    record = revisits().learn(Visit(row(), Reason.HTTP_ERROR, status, b"x" * 20, etag='"x"'), 200.0)

    assert (record.digest, record.etag, record.status) == (OLD.digest, '"v1"', status)
    assert History.unpack(record.history).visits == 1


def test_nearly_the_same_text_is_nearly_no_change() -> None:
    """Three bits of the SimHash: the belief moves less than by a change."""
    known = OLD._replace(history=History(visits=1, seen_at=100.0, fingerprint=0b1111).pack())
    beliefs = {}
    for fingerprint in (0b1110, 0b1111_0000):
        record = revisits(record=known).learn(
            Visit(row(), Reason.FETCHED, 200, b"e" * 20, fingerprint=fingerprint), 90_000.0
        )
        beliefs[fingerprint] = History.unpack(record.history).belief

    near, changed = beliefs.values()
    assert near != changed
    assert near[0] > changed[0]  # the weight of the slowest rate


@pytest.mark.parametrize(
    ("flags", "more", "kind", "depth", "origin"),
    [
        (0, {}, 0, 2, ""),
        (0, {"is_feed": True}, FEED, 2, ""),
        (FLAG_SITEMAP, {}, SITEMAP, 1, "http://origin.example"),
    ],
)
def test_the_first_visit_begins_a_history(flags: int, more: dict[str, Any], kind: int, depth: int, origin: str) -> None:
    """Of its kind; a sitemap's depth counts the files that lead to it."""
    visit = Visit(row(flags, hops="LM"), Reason.FETCHED, 200, b"d" * 20, freshness={"cache-control": "max-age=60"})

    record = revisits(record=None).learn(replace(visit, **more), 200.0)

    history = History.unpack(record.history)
    assert (history.kind, history.depth, history.origin, history.visits) == (kind, depth, origin, 1)
    assert history.fresh_until == 260.0


def test_what_is_no_page_begins_none() -> None:
    """A hub, a robots.txt, a frame that did not answer."""
    for flags, status in ((FLAG_ROBOTS, 200), (FLAG_ROBOTS, None), (FLAG_REQUISITE | FLAG_FRAME, None)):
        reason = Reason.FETCHED if status else Reason.DISCONNECTED
        assert revisits(record=None).learn(Visit(row(flags), reason, status), 200.0).history == b""
    hub = revisits(record=None).learn(Visit(row(FLAG_HUB), Reason.SUBSCRIBED, 202, b"d"), 200.0)
    assert (hub.history, hub.status, hub.digest) == (b"", 0, b"")


def test_a_url_without_a_page_waits_for_one_twice_as_long_each_time() -> None:
    """Until it shows one: that is its first visit, and nothing is known of how it changes."""
    record, tried_at, waits = None, 200.0, []
    for _ in range(4):
        visit = Visit(row(FLAG_RECRAWL if record else 0), Reason.DISCONNECTED)
        record = revisits(record=record).learn(visit, tried_at)
        history = History.unpack(record.history)
        assert (history.visits, history.depth, history.seen_at) == (0, 2, 200.0)
        waits.append((history.fresh_until - tried_at) / DAY_SECONDS)
        tried_at = history.fresh_until + 5.0
    assert waits == [2.0, 4.0, 8.0, 16.0]
    assert revisits(record=record).headers(row()) == {}

    shown = revisits(record=record).learn(Visit(row(), Reason.FETCHED, 200, b"e" * 20, is_feed=True), tried_at)

    assert History.unpack(shown.history) == History(FEED, 2, 1, tried_at, tried_at)


def test_a_page_that_was_shown_once_is_not_unseen_after_a_failure() -> None:
    """Its wait is that of known pages: none of its own."""
    record = revisits().learn(Visit(row(), Reason.DISCONNECTED), 200.0)

    assert History.unpack(record.history) == History.unpack(OLD.history)


def test_a_requisite_is_known_by_its_embeddings_and_by_the_stranger_who_named_it() -> None:
    """Of the page's own domain nobody is named."""
    learning = revisits(record=None)
    own = row(FLAG_REQUISITE, "LLEE")._replace(via="http://a.example/")
    other = row(FLAG_REQUISITE | FLAG_EXTERNAL, "LE")._replace(via="http://b.example/", note="")
    first = [History.unpack(learning.learn(Visit(each, Reason.FETCHED, 200), 200.0).history) for each in (own, other)]

    assert [(found.kind, found.depth, found.origin) for found in first] == [
        (REQUISITE, 2, ""),
        (REQUISITE, 1, "b.example"),
    ]


def test_what_requisites_do_says_nothing_of_how_pages_change() -> None:
    """But their validators are the host's word."""
    known = OLD._replace(history=History(REQUISITE, visits=1, seen_at=100.0).pack())
    learning = revisits(record=known)
    requisite = row(FLAG_RECRAWL | FLAG_REQUISITE)
    requisite = requisite._replace(key=requisite_key(requisite.key))
    for digest in (b"e" * 20, b"f" * 20):
        record = learning.learn(Visit(requisite, Reason.FETCHED, 200, digest, etag='"v1"'), 200.0)

    assert History.unpack(record.history).visits == 2
    assert learning.of("a.example").pages == 0
    assert learning.headers(requisite) == {}

"""Subscriptions to hubs: once a feed, kept from run to run, renewed before their lease ends."""

from crawlerproject.frontier.subscriptions import MAX_SUBSCRIPTIONS, Subscriptions
from crawlerproject.reasons import Reason
from crawlerproject.rules.feeds import read_feed
from crawlerproject.rules.urls import parse
from crawlerproject.stores.memory import MemoryStore
from crawlerproject.stores.protocols import FLAG_HUB, QueuedPage
from tests.frontier.conftest import Bench

DAY = 86_400.0
BEGIN = 20_000 * DAY
FEED = read_feed(b'<feed><link rel="hub" href="http://hub.test/"/></feed>')


def feed(path: str) -> QueuedPage:
    """A feed of a.test."""
    address = parse(f"http://a.test/{path}")
    return QueuedPage(address.host, address.key, address.url, 2, 1, 1, "L", "")


def confirm(subscriptions: Subscriptions, asked: QueuedPage, now: float, lease: float) -> None:
    """The hub's question about what it was asked."""
    token = subscriptions.form(asked).decode().partition("%2Fpush%2F")[2].partition("&")[0]
    question = {
        "hub.mode": "subscribe", "hub.topic": asked.note, "hub.challenge": "c", "hub.lease_seconds": str(int(lease)),
    }  # fmt: skip
    assert subscriptions.verify(token, question, now).body == "c"


def test_a_feed_is_subscribed_to_once() -> None:
    """Two feeds of one hub are two requests in its queue; the same feed again is none, in a later run either."""
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")

    met = [subscriptions.met(feed(path), [], FEED, bench.now) for path in ("one", "two", "one")]

    assert met == [True, True, False]
    asked = store.head("hub.test", 10)
    assert [row.note for row in asked] == ["http://a.test/one", "http://a.test/two"]
    assert all(row.url == "http://hub.test/" and row.flags & FLAG_HUB for row in asked)
    confirm(subscriptions, asked[0], bench.now, DAY)
    later = Subscriptions(store, bench.frontier, "http://p.test/push")
    assert later.form(asked[0]) == subscriptions.form(asked[0])
    assert not later.met(feed("one"), [], FEED, bench.now)


def test_a_lease_is_renewed_before_it_ends() -> None:
    """With a tenth of it left, under the same callback and secret; an unanswered renewal is not asked at every turn."""
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")
    subscriptions.met(feed("one"), [], FEED, BEGIN)
    (asked,) = store.head("hub.test", 10)
    confirm(subscriptions, asked, BEGIN, 10 * DAY)
    form = subscriptions.form(asked)

    due = [subscriptions.renew(BEGIN + days * DAY) for days in (1.0, 8.9, 9.0, 9.01, 9.9, 10.0, 10.1)]

    assert due == [0, 0, 1, 0, 0, 1, 0]
    assert subscriptions.form(asked) == form
    assert len(store.head("hub.test", 10)) == 3


def test_an_unverified_one_is_asked_again_after_a_day() -> None:
    """The hub never came: not at each reading of the feed."""
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")

    met = [subscriptions.met(feed("one"), [], FEED, BEGIN + days * DAY) for days in (0.0, 0.5, 1.0)]

    assert met == [True, False, True]
    assert subscriptions.renew(BEGIN + 5 * DAY) == 0


def test_there_is_a_bound() -> None:
    """So many and no more."""
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")

    met = [subscriptions.met(feed(str(number)), [], FEED, BEGIN) for number in range(MAX_SUBSCRIPTIONS + 1)]

    assert met == [True] * MAX_SUBSCRIPTIONS + [False]


def test_nothing_is_asked_of_hubs_that_could_not_reach_us() -> None:
    """A row left over from a run with WEBSUB_PORT, in one without (as this frontier is): refused, and its robots.txt
    is not asked for either."""
    store = MemoryStore()
    bench = Bench(store)
    Subscriptions(store, bench.frontier, "http://p.test/push").met(feed("one"), [], FEED, bench.now)

    assert bench.next() is None
    assert bench.frontier.take_refused() == {Reason.SCOPE: 1}

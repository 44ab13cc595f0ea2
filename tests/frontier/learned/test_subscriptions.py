"""Subscriptions to hubs: once a feed, kept from run to run, renewed before their lease ends."""

from crawlerproject.frontier.frontier_state import HostOwnership
from crawlerproject.frontier.known_seeds import HUBS_FACT
from crawlerproject.frontier.learned.subscriptions import (
    MAX_UNPROVEN_PER_DOMAIN,
    MAX_UNVERIFIED_PER_DOMAIN,
    MAX_WAITING_PER_DOMAIN,
    RemoteSubscriptions,
    Subscriptions,
)
from crawlerproject.frontier.other_workers import (
    HubMessage,
    HubMoved,
    HubNamed,
    HubRequest,
    Message,
    pack_message,
    unpack_message,
)
from crawlerproject.reasons import Reason
from crawlerproject.rules.feeds.feeds import Feed, read_feed
from crawlerproject.rules.row_kinds import FLAG_HUB
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

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
        "hub.mode": "subscribe", "hub.topic": asked.via, "hub.challenge": "c", "hub.lease_seconds": str(int(lease)),
    }  # fmt: skip
    assert subscriptions.verify(token, question, now).body == "c"


def test_a_feed_is_subscribed_to_once() -> None:
    """Two feeds of one hub are two requests in its queue, the second once the first has shown that it is a hub; the
    same feed again is none, in a later run either.
    """
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")

    met = [subscriptions.feed_read(feed(path), [], FEED, bench.now) for path in ("one", "two", "one")]

    assert met == [True, False, False]
    (first,) = store.head("hub.test", 10)
    confirm(subscriptions, first, bench.now, DAY)
    asked = store.head("hub.test", 10)
    assert [row.via for row in asked] == ["http://a.test/one", "http://a.test/two"]
    before_fleets = asked[0]._replace(note=asked[0].via)
    assert subscriptions.form(before_fleets) == subscriptions.form(asked[0])
    assert all(row.url == "http://hub.test/" and row.flags & FLAG_HUB for row in asked)
    later = Subscriptions(store, bench.frontier, "http://p.test/push")
    assert later.form(asked[0]) == subscriptions.form(asked[0])
    assert not later.feed_read(feed("one"), [], FEED, bench.now)


def test_a_hub_that_an_older_version_knew_is_proven() -> None:
    """One that verified a subscription is asked for more at once, though no list of hubs was kept."""
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")
    subscriptions.feed_read(feed("one"), [], FEED, bench.now)
    confirm(subscriptions, store.head("hub.test", 1)[0], bench.now, DAY)
    store.apply(Changes(facts=[(HUBS_FACT, b"{}")]))

    later = Subscriptions(store, bench.frontier, "http://p.test/push")

    assert [later.feed_read(feed(path), [], FEED, bench.now) for path in ("two", "three")] == [True, True]


def test_a_lease_is_renewed_before_it_ends() -> None:
    """With a tenth of it left, under the same callback and secret; an unanswered renewal is not asked at every turn."""
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")
    subscriptions.feed_read(feed("one"), [], FEED, BEGIN)
    (asked,) = store.head("hub.test", 10)
    confirm(subscriptions, asked, BEGIN, 10 * DAY)
    form = subscriptions.form(asked)

    due = [subscriptions.renew(BEGIN + days * DAY) for days in (1.0, 8.9, 9.0, 9.01, 9.9, 10.0, 10.1)]

    assert due == [0, 0, 1, 0, 0, 1, 0]
    assert subscriptions.form(asked) == form
    assert len(store.head("hub.test", 10)) == 3


def hub_feed(hub: str) -> Feed:
    """A feed that names this hub."""
    return read_feed(f'<feed><link rel="hub" href="http://{hub}/form"/></feed>'.encode())


def test_what_is_no_hub_is_asked_once() -> None:
    """It never verifies: eight feeds of one site have it sent one request, in days and after a restart as well, and
    at another port of its too; the refusals are counted.
    """
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")

    for days in (0.0, 0.5, 1.0, 40.0):
        for number in range(8):
            subscriptions.feed_read(feed(str(number)), [], hub_feed("victim.test"), BEGIN + days * DAY)
            subscriptions.feed_read(
                feed(f"p{number}"), [], hub_feed(f"victim.test:{8000 + number}"), BEGIN + days * DAY
            )
        subscriptions.renew(BEGIN + days * DAY)
        subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")

    rows = [row for host in store.hosts_with_work() for row in store.head(host, 99)]
    assert len(rows) == 1
    assert bench.frontier.state.refused.take() == {Reason.HUB_UNPROVEN: 15}


def test_other_sites_have_it_asked_once_more_a_day_later() -> None:
    """A wrong path that one site names must not close a real hub to all others; three sites in all."""
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")
    sites = [feed("x")._replace(url=f"http://site{number}.test/feed") for number in range(6)]

    met = [
        [subscriptions.feed_read(site, [], hub_feed("victim.test"), BEGIN + day * DAY) for site in sites]
        for day in range(5)
    ]

    assert [sum(of_day) for of_day in met] == [1, 1, 1, 0, 0]


def test_a_request_that_was_never_sent_is_not_held_against_the_hub() -> None:
    """Its robots.txt forbids the path that a stranger named: the site whose hub it is has it asked."""
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")
    stranger = feed("x")._replace(url="http://stranger.test/feed")
    subscriptions.feed_read(stranger, [], hub_feed("hub.test"), BEGIN)
    (row,) = store.head("hub.test", 10)
    store.apply(Changes(removed=[row], pages=[(row.key, PageRecord(row.url, Reason.ROBOTS, 0, BEGIN))]))

    assert subscriptions.feed_read(feed("one"), [], FEED, BEGIN)


def test_the_sites_of_one_domain_have_few_hosts_asked() -> None:
    """Three that never prove to be a hub; a domain of its own is not affected."""
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")
    other = feed("x")._replace(url="http://other.test/feed")

    met = [subscriptions.feed_read(feed(f"f{number}"), [], hub_feed(f"v{number}.test"), BEGIN) for number in range(9)]

    assert met == [True] * MAX_UNPROVEN_PER_DOMAIN + [False] * (9 - MAX_UNPROVEN_PER_DOMAIN)
    assert subscriptions.feed_read(other, [], hub_feed("hub.test"), BEGIN)


def test_a_redirect_to_another_host_counts_as_its_request() -> None:
    """Two hubs of a stranger send us to one victim: it is asked once."""
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")
    for number in range(2):
        subscriptions.feed_read(feed(f"f{number}"), [], hub_feed(f"hub{number}.test"), BEGIN)
        (row,) = store.head(f"hub{number}.test", 1)
        subscriptions.moved(row, parse(f"http://victim.test/delete?{number}"), "R", BEGIN)

    assert len(store.head("victim.test", 10)) == 1


def test_there_is_a_bound_for_each_domain() -> None:
    """Of one domain so many wait for their hub, and no more."""
    store = MemoryStore()
    bench = Bench(store)
    subscriptions = Subscriptions(store, bench.frontier, "http://p.test/push")

    for number in range(2 * MAX_WAITING_PER_DOMAIN):
        subscriptions.feed_read(feed(str(number)), [], FEED, BEGIN)
    (row,) = store.head("hub.test", 10)
    confirm(subscriptions, row, BEGIN, DAY)

    assert len(store.head("hub.test", 1000)) == 1 + MAX_UNVERIFIED_PER_DOMAIN


def test_nothing_is_asked_of_hubs_that_could_not_reach_us() -> None:
    """A row left over from a run with WEBSUB_PORT, in one without (as this frontier is): refused, and its robots.txt
    is not asked for either.
    """
    store = MemoryStore()
    bench = Bench(store)
    Subscriptions(store, bench.frontier, "http://p.test/push").feed_read(feed("one"), [], FEED, bench.now)

    assert bench.next() is None
    assert bench.frontier.state.refused.take() == {Reason.SCOPE: 1}


class Elsewhere(HostOwnership):
    """Hosts of other workers: a.test is one worker's, all others are another's."""

    def __init__(self, feeds: bool) -> None:
        super().__init__()
        self.feeds = feeds
        self.sent: list[tuple[str, Message]] = []

    def mine(self, host: str) -> bool:
        """Whether the host is of this worker."""
        return (host == "a.test") is self.feeds

    def send(self, host: str, message: Message) -> None:
        """Through what travels, and back."""
        self.sent.append((host, unpack_message(pack_message(message))))


def test_a_fleet_does_all_of_it_by_messages() -> None:
    """The feed at a worker that hubs do not reach, the hub at another, the subscription at the one that they reach."""
    listener, reader, asker = MemoryStore(), MemoryStore(), MemoryStore()
    owners = Elsewhere(feeds=True), Elsewhere(feeds=True), Elsewhere(feeds=False)
    at_listener, at_reader, at_asker = (
        Bench(store, ownership=owner) for store, owner in zip((listener, reader, asker), owners, strict=True)
    )
    told: list[HubMessage] = []

    def tell(message: HubMessage) -> None:
        said = unpack_message(pack_message(message))
        assert isinstance(said, HubNamed | HubMoved | HubRequest)
        told.append(said)

    subscriptions = Subscriptions(listener, at_listener.frontier, "http://p.test/push")
    reading, asking = (RemoteSubscriptions(bench.frontier, tell) for bench in (at_reader, at_asker))
    for bench, its in ((at_listener, subscriptions), (at_reader, reading), (at_asker, asking)):
        bench.frontier.subscriptions = its

    assert not reading.feed_read(feed("one"), [], FEED, BEGIN)
    assert not reading.feed_read(feed("none"), [], read_feed(b"<feed></feed>"), BEGIN)
    assert told == [HubNamed("http://hub.test/", "http://a.test/one", 1, "L")]
    at_listener.frontier.read(told[0], BEGIN)
    at_listener.frontier.read(told[0], BEGIN)  # a message may come twice
    ((host, request),) = owners[0].sent
    at_asker.frontier.read(request, BEGIN)
    (row,) = asker.head(host, 10)
    assert (host, row.url, row.flags) == ("hub.test", "http://hub.test/", FLAG_HUB)
    assert not listener.head("hub.test", 10)

    asking.moved(row, parse("http://hub.test/there"), "R", BEGIN)
    at_listener.frontier.read(told[1], BEGIN)
    at_asker.frontier.read(owners[0].sent[1][1], BEGIN)
    assert {again.url: asking.form(again) for again in asker.head(host, 10)} == {
        "http://hub.test/": asking.form(row),
        "http://hub.test/there": asking.form(row),
    }
    token = asking.form(row).decode().partition("%2Fpush%2F")[2].partition("&")[0]
    question = {"hub.mode": "subscribe", "hub.topic": row.via, "hub.challenge": "c", "hub.lease_seconds": "60"}
    assert subscriptions.verify(token, question, BEGIN).body == "c"
    at_listener.frontier.read(HubMoved("http://unknown.test/", "hub.test", "http://x.test/", ""), BEGIN)
    assert len(owners[0].sent) == 2

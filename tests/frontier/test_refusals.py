"""A long queue that is refused: each row is read once or twice, a turn's share at a time, and decided at once."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.frontier.frontier_state import UNSTORED_WAIT_SECONDS
from crawlerproject.frontier.hosts.host import Host
from crawlerproject.frontier.learned.models import TrapModel
from crawlerproject.frontier.learned.revisits import DueRevisit, RevisitPolicy, due
from crawlerproject.frontier.learned.revisits import again as again_of
from crawlerproject.frontier.passage import DiscoveredUrl, Lease, Visit
from crawlerproject.inspection.explanation import Why
from crawlerproject.reasons import Reason
from crawlerproject.rules.revisits.change_rate import WEB, packed
from crawlerproject.rules.revisits.history import DAY_SECONDS, History, HostHistory
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_HUB, FLAG_RENDER, LAST
from crawlerproject.rules.url.refused_urls import Exclusion
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

HOST = "long.test"
ROWS = 1_000
# Each row is met at the head once and in a turn's share once.
MOST_READS = 2.5
# Between two shares of one queue there is a little time for others.
AT_ONCE_SECONDS = 0.01
DISALLOWED = b"User-agent: *\nDisallow: /\n"


class CountedStore(MemoryStore):
    """Counts what is asked of it, and may die or be full at any change."""

    def __init__(self) -> None:
        super().__init__()
        self.rows_read = 0
        self.decided: Counter[bytes] = Counter()
        self.changes_left = -1  # until it is full; negative: never

    def head(self, host: str, limit: int, after: tuple[int, int] | None = None) -> list[QueuedPage]:
        """Counted by the row."""
        rows = super().head(host, limit, after)
        self.rows_read += len(rows)
        return rows

    def apply(self, changes: Changes) -> None:
        """Pages are counted; StorageError once no change is left."""
        if not self.changes_left:
            raise StorageError("no room")
        self.changes_left -= 1
        self.decided.update(key for key, _ in changes.pages)
        super().apply(changes)


def url(number: int, scheme: str = "http") -> str:
    """A page of the host."""
    return f"{scheme}://{HOST}/item/{number}"


def long_queue(count: int = ROWS, *, flags: int = 0, scheme: str = "http") -> CountedStore:
    """What an earlier run left: one host with a long queue."""
    store = CountedStore()
    host = Host(HOST, 5.0)
    host.rows = host.known = host.arrival = count
    rows = [
        QueuedPage(HOST, parse(url(number, scheme)).key, url(number, scheme), 10, number + 1, 1, "L", "", 0, flags)
        for number in range(count)
    ]
    store.apply(Changes(queued=rows, hosts=[(HOST, host.pack())]))
    return store


def first_robots(bench: Bench, body: bytes = b"") -> None:
    """Answer the host's robots.txt, unless an earlier process did."""
    if bench.frontier.hosts.of(HOST).robots_until("http") <= bench.now:
        bench.through_robots(body)


def exclude(bench: Bench) -> Reason:
    """The host's domain is added to NeverCrawl."""
    bench.never.list = Exclusion.parse([HOST])[0]
    return Reason.NEVERCRAWL


def disallow(bench: Bench) -> Reason:
    """The host's robots.txt forbids everything from now on."""
    first_robots(bench, DISALLOWED)
    return Reason.ROBOTS


def disallow_uncommitted(bench: Bench) -> Reason:
    """The same, by rules that are not committed yet."""
    robots = bench.next()
    assert robots is not None
    bench.answer(robots, body=DISALLOWED)
    bench.now = robots.host.next_free
    return Reason.ROBOTS


def trap(bench: Bench) -> Reason:
    """The budget of the rows' template is spent."""
    first_robots(bench)
    traps = bench.frontier.leasing._filters._traps = TrapModel(bench.store)
    for number in range(60):
        row = QueuedPage(HOST, parse(url(number)).key, url(number), 10, number + 1, 1, "L", "", 0)
        traps.learn(Visit(row, Reason.HTTP_ERROR, 404), bench.now)
    return Reason.TRAP


def no_hubs(bench: Bench) -> Reason:
    """The rows are for WebSub hubs, to which this run does not listen."""
    return Reason.SCOPE


CAUSES = [exclude, disallow, trap, no_hubs]
Cause = Callable[[Bench], Reason]


def flags_for(cause: Cause) -> int:
    """What the rows must be for the cause to concern them."""
    return FLAG_HUB if cause is no_hubs else 0


def drained(bench: Bench, *, issuer: int = 10_000) -> list[Lease]:
    """Have turns until nothing is left to be done now, or at once; what was leased, which is left in flight."""
    leases = []
    for _ in range(issuer):
        lease = bench.next()
        if lease is not None:
            leases.append(lease)
            continue
        wake = bench.frontier.workbench.wake_at()
        if wake is None or wake > bench.now + AT_ONCE_SECONDS:
            break
        bench.now = max(bench.now, wake)
    return leases


@pytest.mark.parametrize("cause", CAUSES)
def test_every_row_is_refused_with_its_reason_and_read_but_twice(cause: Cause) -> None:
    """Whatever refuses them: the reads grow with the rows, not with their square; counts and `why` are right."""
    store = long_queue(flags=flags_for(cause))
    bench = Bench(store)
    reason = cause(bench)
    store.rows_read = 0

    assert drained(bench) == []

    assert store.rows_read <= MOST_READS * ROWS
    assert bench.frontier.state.refused.take() == {reason: ROWS}
    assert bench.frontier.hosts.waiting_urls == 0
    assert bench.frontier.state.changes.removed == []  # none waits for a commit
    assert [store.decided[parse(url(number)).key] for number in range(ROWS)] == [1] * ROWS
    packed = store.host(HOST)
    assert packed is not None
    assert Host.unpack(HOST, packed).rows == 0
    store.queue = lambda host: iter(store.head(host, ROWS))  # type: ignore[attr-defined]  # as a view has it
    why = Why(store, bench.frontier.leasing._filters, "TestBed", bench.now)  # type: ignore[arg-type]
    assert {why.url(url(number)).reason for number in range(0, ROWS, 99)} == {reason}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_share_at_a_time(cause: Cause) -> None:
    """Once the caller has had enough, a few dozen rows are decided and no more; others have their turns in between."""
    store = long_queue(flags=flags_for(cause))
    bench = Bench(store)
    cause(bench)
    bench.seed("http://other.test/")
    other = bench.next("192.0.2.7")
    while other is None or other.host.name != "other.test":
        assert bench.frontier.leasing.next(bench.now, lambda: True) is None
        bench.now += AT_ONCE_SECONDS
        other = bench.next("192.0.2.7")
    bench.answer(other)
    bench.commit()
    bench.now = other.host.next_free
    left = bench.frontier.hosts.waiting_urls

    shares, leases = list[int](), 0
    for _ in range(2 * ROWS):
        turn = bench.frontier.leasing.next(bench.now, lambda: True)
        bench.now += AT_ONCE_SECONDS
        leases += isinstance(turn, Lease)
        shares.append(left - bench.frontier.hosts.waiting_urls)
        left = bench.frontier.hosts.waiting_urls
        if left == 0:
            break

    assert left == 0
    assert max(shares) <= 64
    assert leases == 1  # the other host's page


@pytest.mark.parametrize("cause", CAUSES)
def test_a_crash_at_any_change_loses_none_and_decides_none_twice(cause: Cause) -> None:
    """After each change the process dies; the next goes on where it was."""
    rows = 300
    store = long_queue(rows, flags=flags_for(cause))
    now, crashes = 1000.0, 0
    while any(store.hosts_with_work()):
        bench = Bench(store, now=now, clean=False)
        bench.now += 30.0
        cause(bench)
        assert bench.frontier.hosts.waiting_urls + sum(store.decided.values()) == rows
        store.changes_left = 1
        with pytest.raises(StorageError):
            drained(bench, issuer=3)
            store.apply(Changes(facts=[("end", b"")]))  # its last change was allowed
        store.changes_left = -1
        now, crashes = bench.now + 100.0, crashes + 1

    assert crashes >= rows // 64
    assert len(store.decided) == rows
    assert set(store.decided.values()) == {1}


def test_without_room_nothing_changes_and_it_goes_on_later() -> None:
    """A full disk between two shares."""
    store = long_queue()
    bench = Bench(store)
    exclude(bench)
    store.changes_left = 3
    with pytest.raises(StorageError):
        drained(bench)
    refused = bench.frontier.state.refused.take()
    assert refused == {Reason.NEVERCRAWL: 3 * 64}
    assert bench.frontier.hosts.waiting_urls == ROWS - 3 * 64
    bench.now += AT_ONCE_SECONDS
    assert bench.next() is None  # not again at once

    store.changes_left = -1
    bench.now += 2 * UNSTORED_WAIT_SECONDS
    drained(bench)

    assert bench.frontier.state.refused.take() == {Reason.NEVERCRAWL: ROWS - 3 * 64}
    assert set(store.decided.values()) == {1}


def test_a_refusal_by_rules_that_are_not_committed_goes_with_them(again: Callable[..., Bench]) -> None:
    """A crash forgets the answer and what it refused; a commit stores both, and the rest follows at once."""
    store = long_queue()
    bench = Bench(store)
    disallow_uncommitted(bench)
    drained(bench)
    assert store.decided == {}
    assert len(bench.frontier.hosts.of(HOST).taken) <= 64
    other = again(store, now=bench.now, clean=False)
    assert other.frontier.hosts.waiting_urls == ROWS

    bench.commit()
    bench.now += UNSTORED_WAIT_SECONDS
    drained(bench)
    bench.commit()

    assert len(store.decided) == ROWS
    assert bench.frontier.hosts.waiting_urls == 0
    assert store.head(HOST, 1) == []


def revisits_chosen(store: MemoryStore, now: float) -> list[DueRevisit]:
    """What a recrawl chooses at that moment."""
    lists = due(store.pages, lambda _: HostHistory(), now, RevisitPolicy(None, DAY_SECONDS))
    return [page for chosen in lists for page in chosen]


@pytest.mark.parametrize("cause", [exclude, disallow, disallow_uncommitted])
def test_a_known_page_that_is_refused_is_chosen_again_later(cause: Cause) -> None:
    """What its visits have shown stays known; it waits no more, and counts as decided in this recrawl."""
    store = CountedStore()
    page = parse(url(1))
    history = History(visits=3, seen_at=1000.0, belief=packed(WEB))
    known = PageRecord(page.url, Reason.FETCHED, 200, 1000.0, b"d" * 20, "etag", "date", history.pack())
    store.apply(Changes(pages=[(page.key, known)]))
    bench = Bench(store, now=1000.0 + 3 * DAY_SECONDS)
    (chosen,) = revisits_chosen(store, bench.now)
    bench.frontier.admission.again([again_of(chosen, bench.now)], bench.now)
    assert not revisits_chosen(store, bench.now)
    reason = cause(bench)

    assert drained(bench) == []
    bench.commit()

    kept = store.page(page.key)
    assert kept is not None
    assert kept == known._replace(reason=reason, fetched_at=kept.fetched_at)
    assert not revisits_chosen(store, bench.now)
    assert [each.record.url for each in revisits_chosen(store, bench.now + 2 * DAY_SECONDS)] == [page.url]


def closed(bench: Bench) -> Bench:
    """The bench, without a browser; robots.txt allows all."""
    bench.frontier.renders.closed = "no browser"
    return bench


def test_pages_kept_for_a_browser_are_looked_at_once_and_stand_in_no_way() -> None:
    """In the run that first keeps them each is read twice; then one look says that nothing else is left."""
    store = long_queue(flags=FLAG_RENDER)
    bench = closed(Bench(store))
    store.rows_read = 0
    assert drained(bench) == []
    assert store.rows_read <= MOST_READS * ROWS
    assert bench.frontier.renders.kept == ROWS
    assert bench.frontier.hosts.waiting_urls == 0

    later = closed(Bench(store, now=bench.now + 10.0))
    later.now += 10.0
    store.rows_read = 0
    assert drained(later) == []
    assert store.rows_read <= 3
    assert later.frontier.hosts.waiting_urls == 0
    assert later.frontier.renders.kept == ROWS

    later.add(f"http://{HOST}/new")  # known is above the bench's budget: not queued
    later.seed(f"http://{HOST}/new")
    later.now += 10.0
    later.through_robots()
    lease = later.next()
    assert lease is not None
    assert lease.row.url.endswith("/new")
    assert store.rows_read <= 20

    browser = Bench(store, now=later.now + 10.0)
    browser.frontier.renders.mode, browser.frontier.renders.closed = "always", ""
    browser.now += 10.0
    assert browser.frontier.hosts.waiting_urls == ROWS + 1
    met = list[str]()
    while len(met) < 5:
        lease = browser.next()
        if lease is None:
            wake = browser.frontier.workbench.wake_at()
            assert wake is not None
            browser.now = max(browser.now, wake)
        elif lease.row.kind.is_render:
            met.append(lease.row.url)
            browser.frontier.finish_render(lease, browser.now, again=False)
        else:
            browser.answer(lease)
        browser.commit()
    assert met == [url(number) for number in range(5)]  # in their order


def test_a_host_that_is_forgotten_with_kept_pages_is_counted_right_when_a_link_brings_it_back() -> None:
    """Its kept pages must not be taken from what waits elsewhere: the crawl would end too soon."""
    store = long_queue(100, flags=FLAG_RENDER)
    bench = closed(Bench(store))
    assert drained(bench) == []
    bench.commit()
    bench.now += 100.0
    assert bench.next() is None
    assert HOST not in bench.frontier.workbench.hosts

    bench.seed(f"http://{HOST}/new", "http://other.test/")
    while (lease := bench.next()) is not None or bench.frontier.hosts.waiting_urls > 0:
        if lease is not None:
            bench.answer(lease)
            bench.commit()
        assert bench.frontier.hosts.waiting_urls >= 0
        bench.now += 10.0

    assert [store.page(parse(page).key) is not None for page in (f"http://{HOST}/new", "http://other.test/")] == [
        True,
        True,
    ]
    assert len(store.head(HOST, 200)) == 100


def test_pages_of_a_scheme_that_cannot_be_reached_go_last_at_a_few_reads_each() -> None:
    """A thousand http pages before one of https whose robots.txt is good: it is leased in this very moment."""
    store = long_queue()
    bench = Bench(store)
    bench.seed(f"https://{HOST}/good")
    host = bench.frontier.hosts.of(HOST)
    [good] = [row for row in store.head(HOST, 2 * ROWS) if row.url.startswith("https")]
    store.apply(Changes(removed=[good], queued=[good._replace(priority=20)]))
    host.robots_until_http, host.robots_until_https = -(bench.now + 9e5), bench.now + 9e5
    store.apply(Changes(robots=[(f"https://{HOST}", _allowing(bench))]))
    store.rows_read = 0

    leases = drained(bench)

    assert [lease.row.url for lease in leases] == [f"https://{HOST}/good"]
    assert store.rows_read <= MOST_READS * ROWS + 200
    assert bench.frontier.hosts.waiting_urls == ROWS
    assert {row.priority for row in store.head(HOST, ROWS + 1)} == {20, LAST}
    bench.answer(leases[0])
    commits = 0
    while bench.frontier.hosts.waiting_urls:
        bench.commit()
        bench.now = max(bench.now, bench.frontier.workbench.wake_at() or 0.0)
        drained(bench)
        commits += 1
        assert commits < 50
    assert commits > 2  # one try a commit, not all at once
    assert bench.frontier.state.refused.take() == {Reason.ROBOTS_UNREACHABLE: ROWS}
    assert set(Counter(store.decided).values()) == {1}


def _allowing(bench: Bench) -> bytes:
    outcome = bench.frontier.state.robots.answered(f"https://{HOST}", 200, b"", Reason.FETCHED, bench.now)
    assert outcome.record is not None
    return outcome.record


def test_hosts_that_were_met_are_taken_up_without_reading_their_queues() -> None:
    """A link to a host with a long queue comes while hosts are taken up: that costs no look at every row."""
    store = long_queue()
    bench = Bench(store, load=False)
    bench.seed(f"http://{HOST}/new")
    store.rows_read = 0

    while bench.frontier.load_some(10):
        pass

    assert store.rows_read <= 1
    assert bench.frontier.hosts.waiting_urls == ROWS + 1


@pytest.mark.parametrize("seed", range(20))
def test_whatever_is_refused_when_nothing_is_lost_or_decided_twice(seed: int) -> None:
    """Leases, commits, crashes, links and an exclusion list that changes, in any order."""
    chance = random.Random(seed)
    store = CountedStore()
    bench = Bench(store)
    known = set[str]()
    crashed = False
    for step in range(250):
        act = chance.randrange(8)
        if act < 2:
            more = [f"http://h{chance.randrange(3)}.test/{step}/{number}" for number in range(chance.randrange(40))]
            bench.seed(*more)
            known.update(more if bench.never.list.domains == set() else _queued(store, more))
        elif act == 2:
            names = chance.sample(["h0.test", "h1.test", "h2.test"], chance.randrange(3))
            bench.never.list = Exclusion.parse(names)[0]
        elif act == 3:
            bench.commit()
        elif act == 4 and chance.random() < 0.3:
            bench, crashed = Bench(store, now=bench.now + 1.0, clean=False), True
        elif (lease := bench.next()) is not None:
            bench.answer(lease)
        else:
            bench.now += chance.choice((0.1, 2.0, 6.0))
    bench.never.list = Exclusion.parse([])[0]
    for _ in range(10_000):
        if (lease := bench.next()) is not None:
            bench.answer(lease)
        elif bench.frontier.hosts.waiting_urls > 0:
            bench.commit()
            bench.now = max(bench.now + 0.001, bench.frontier.workbench.wake_at() or 0.0)
        else:
            break
    bench.commit()

    assert bench.frontier.hosts.waiting_urls == 0
    assert not list(store.hosts_with_work())
    decided = {parse(page).key for page in known}
    assert decided <= set(store.decided)
    assert {store.decided[key] for key in decided} == {1}, f"crashed: {crashed}"


def _queued(store: MemoryStore, urls: list[str]) -> set[str]:
    """Those that the filters let in."""
    known = store.known([parse(page).key for page in urls])
    return {page for page, there in zip(urls, known, strict=True) if there}


def _queued_of(urls: list[tuple[str, int]], *, at_once: bool) -> tuple[list[str], Counter[str]]:
    """What of links is queued, and what refuses the others, when they are given together or one by one."""
    bench = Bench(store := MemoryStore(), max_urls=6)
    bench.seed("http://a.test/", "http://a.test:8080/")
    for _ in range(2):
        bench.through_robots(b"User-agent: *\nDisallow: /p\n")
    found = [DiscoveredUrl(parse(url), 1, "L", "http://via.example/", 10, flags) for url, flags in urls]
    for batch in [found] if at_once else [[one] for one in found]:
        bench.frontier.add(batch, bench.now)
    hosts = ("a.test", "a.test:8080", "b.test", "b.test:8080")
    return [row.url for host in hosts for row in store.head(host, 100)], bench.frontier.state.refused.counts


@pytest.mark.parametrize("seed", range(20))
def test_links_of_a_page_are_judged_as_each_alone(seed: int) -> None:
    """What the first of a host has found out serves the others: budget, rules and ports are those of each."""
    rng = random.Random(seed)
    hosts, paths = ("a.test", "a.test:8080", "b.test", "b.test:8080"), ("", "1", "2", "3", "4/", "p5", "6.zip", "q?a=b")
    all_urls = [f"{scheme}://{host}/{path}" for scheme in ("http", "https") for host in hosts for path in paths]
    urls = [(url, FLAG_EXTERNAL if rng.random() < 0.2 else 0) for url in rng.sample(all_urls, 30)]
    together, alone = _queued_of(urls, at_once=True), _queued_of(urls, at_once=False)

    assert Counter(together[0]) == Counter(alone[0])
    assert together[1] == alone[1]

"""One contract, every store: what any ``FrontierStore`` must do. Subclass it and give it a ``store`` fixture."""

from __future__ import annotations

import random
from typing import Any

from crawlerproject.rules.archive.warc_records import Original
from crawlerproject.rules.row_kinds import FLAG_SEED
from crawlerproject.stores.protocols import (
    IN_MEMORY,
    Applied,
    Box,
    Changes,
    Due,
    Fingerprint,
    FrontierStore,
    Near,
    PageRecord,
    QueuedPage,
)


def row(host: str, number: int, priority: int = 1, **more: Any) -> QueuedPage:
    """A queued page that is unlike any other of another host or number."""
    url = f"https://{host}/{number}"
    plain = QueuedPage(host, key_of(host, number), url, priority, number, 1, "L", f"https://{host}/")
    return QueuedPage(**(plain._asdict() | more))


def key_of(host: str, number: int) -> bytes:
    """24 bytes that begin with the host's share, as rules/url/urls.py makes them."""
    return host.encode().ljust(8, b"_")[:8] + number.to_bytes(16, "big")


def turned(value: int, bits: int, chance: random.Random) -> int:
    """The value with so many of its 64 bits turned over."""
    for bit in chance.sample(range(64), bits):
        value ^= 1 << bit
    return value


def record(number: int) -> PageRecord:
    """A page record with every field set."""
    return PageRecord(
        f"https://a/{number}", "fetched", 200, 1.5e9 + number, b"\0" * 20, '"e"', "Mon, 01 Jan 2024", b"history"
    )


class StoreContract:
    """What holds for every store."""

    def test_head_is_ordered_by_priority_then_arrival(self, store: FrontierStore) -> None:
        """Mercator's two tiers, whatever the order of queueing."""
        rows = [row("a", 5), row("a", 3), row("a", 300), row("a", 9, priority=0), row("a", 1, priority=2)]
        store.apply(Changes(queued=rows))
        assert [found.arrival for found in store.head("a", 10)] == [9, 3, 5, 300, 1]

    def test_rows_come_back_whole(self, store: FrontierStore) -> None:
        """Every field survives, with characters outside ASCII and the greatest numbers."""
        full = row("xn--nxasmq6b:8080", 2**63, 255, depth=70_000, hops="LLRP" * 30, tries=60_000, flags=FLAG_SEED)
        full = full._replace(url="https://x/ü\0\n" * 900, via="\ud800", note="https://x:8080")
        bare = QueuedPage("b", bytes(24), "u", 0, 0, 0, "", "")
        store.apply(Changes(queued=[full, bare]))
        assert store.head(full.host, 1) == [full]
        assert store.head("b", 1) == [bare]

    def test_head_gives_no_more_than_asked(self, store: FrontierStore) -> None:
        """The limit holds, none included."""
        store.apply(Changes(queued=[row("a", number) for number in range(5)]))
        assert [len(store.head("a", limit)) for limit in (0, 1, 3, 9)] == [0, 1, 3, 5]

    def test_head_after_a_place_continues_there(self, store: FrontierStore) -> None:
        """``after`` is exclusive, and need not be a place where a row is."""
        store.apply(Changes(queued=[row("a", number) for number in (10, 20, 30)] + [row("a", 5, priority=2)]))
        assert [found.arrival for found in store.head("a", 2, after=(1, 10))] == [20, 30]
        assert [found.arrival for found in store.head("a", 9, after=(1, 25))] == [30, 5]
        assert store.head("a", 9, after=(2, 5)) == []

    def test_every_decided_page_is_listed(self, store: FrontierStore) -> None:
        """Whole, each with its key; what is only queued is not."""
        decided = {key_of("a", number): record(number) for number in range(3)}
        store.apply(Changes(queued=[row("b", 1)], pages=list(decided.items())))
        assert dict(store.pages()) == decided

    def test_hosts_do_not_mix(self, store: FrontierStore) -> None:
        """Host names that begin alike are different queues."""
        names = ["a.example", "a.example:8080", "a.example.org", "a", "[::1]:80"]
        store.apply(Changes(queued=[row(name, 1) for name in names]))
        assert all([found.host for found in store.head(name, 9)] == [name] for name in names)
        assert sorted(store.hosts_with_work()) == sorted(names)

    def test_known_is_queued_or_decided(self, store: FrontierStore) -> None:
        """New keys are unknown; queued, decided, and decided without ever being queued are known."""
        queued, decided, never, refused = row("a", 1), row("a", 2), row("a", 3), row("a", 4)
        keys = [queued.key, decided.key, never.key, refused.key]
        assert store.known(keys) == [False] * 4
        store.apply(Changes(queued=[queued, decided]))
        store.apply(Changes(removed=[decided], pages=[(decided.key, record(2)), (refused.key, record(4))]))
        assert store.known(keys) == [True, True, False, True]
        assert store.known([]) == []
        assert store.known([queued.key, never.key], [queued.host, never.host]) == [True, False]

    def test_a_page_is_known_by_its_last_fate(self, store: FrontierStore) -> None:
        """No record before the first fate; a later one replaces it; queueing it again forgets nothing."""
        page = row("a", 1)
        store.apply(Changes(queued=[page]))
        assert store.page(page.key) is None
        store.apply(Changes(removed=[page], pages=[(page.key, record(1))]))
        assert store.page(page.key) == record(1)
        store.apply(Changes(queued=[page._replace(arrival=9)]))
        assert store.page(page.key) == record(1)
        store.apply(Changes(pages=[(page.key, record(2))]))
        assert store.page(page.key) == record(2)

    def test_removed_rows_leave_the_queue(self, store: FrontierStore) -> None:
        """In order or not, once or twice; the host has no more work when its last row is gone."""
        rows = [row("a", number) for number in range(4)]
        store.apply(Changes(queued=[*rows, row("b", 1)]))
        store.apply(Changes(removed=[rows[2], rows[0]]))
        assert store.head("a", 9) == [rows[1], rows[3]]
        store.apply(Changes(removed=[rows[0], rows[1]]))
        assert list(store.hosts_with_work()) in (["a", "b"], ["b", "a"])
        store.apply(Changes(removed=[rows[3]]))
        assert store.head("a", 9) == []
        assert list(store.hosts_with_work()) == ["b"]

    def test_a_row_may_be_replaced_in_its_place(self, store: FrontierStore) -> None:
        """Removal comes before queueing within one change: a retry may keep its turn."""
        first = row("a", 1)
        again = first._replace(tries=1)
        store.apply(Changes(queued=[first]))
        store.apply(Changes(removed=[first], queued=[again]))
        assert store.head("a", 9) == [again]
        assert store.known([first.key]) == [True]

    def test_a_late_row_may_be_first(self, store: FrontierStore) -> None:
        """Looking at the head, even of an emptied queue, must not hide what is queued before it later."""
        late, early, earliest = row("a", 9), row("a", 5), row("a", 7, priority=0)
        store.apply(Changes(queued=[late]))
        assert store.head("a", 1) == [late]
        store.apply(Changes(queued=[early]))
        assert store.head("a", 2) == [early, late]
        store.apply(Changes(removed=[early, late]))
        assert store.head("a", 2) == []
        store.apply(Changes(queued=[late]))
        store.apply(Changes(queued=[earliest]))
        assert store.head("a", 2) == [earliest, late]

    def test_states_and_facts_are_kept_apart(self, store: FrontierStore) -> None:
        """The same name as host, origin and fact has three values; the last one written stays."""
        assert (store.host("x"), store.robots("x"), store.fact("x")) == (None, None, None)
        store.apply(Changes(hosts=[("x", b"0"), ("x", b"h")], robots=[("x", b"")], facts=[("x", b"f" * 600_000)]))
        assert (store.host("x"), store.robots("x"), store.fact("x")) == (b"h", b"", b"f" * 600_000)

    def test_many_hosts_are_each_named_once(self, store: FrontierStore) -> None:
        """More hosts than are looked up at a time, some of them emptied again."""
        rows = [row(f"host-{number}", number + copy) for number in range(2500) for copy in (0, 5000)]
        store.apply(Changes(queued=rows))
        store.apply(Changes(removed=rows[:1000]))
        found = list(store.hosts_with_work())
        assert len(found) == len(set(found))
        assert set(found) == {f"host-{number}" for number in range(500, 2500)}

    def test_an_empty_change_is_nothing(self, store: FrontierStore) -> None:
        """Nothing to apply is no error, and neither is making it durable."""
        store.apply(Changes())
        store.sync()
        assert list(store.hosts_with_work()) == []


class DueContract:
    """What holds for every ``FrontierStore``."""

    def test_hosts_are_due_in_the_order_of_moments_and_names(self, store: FrontierStore) -> None:
        """Whatever the order in which they came; a place that is asked for is not among those behind it."""
        clocks = [(3_000_000_000_000_000, "b"), (7, "ü.example"), (7, "a"), (2**63, "z"), (IN_MEMORY, "m"), (256, "c")]
        store.apply(Changes(due=[(host, None, at) for at, host in clocks]))
        places = sorted(Due(at, host) for at, host in clocks)
        assert store.due(99, Due(IN_MEMORY, "")) == places
        assert store.due(2, Due(IN_MEMORY, "")) == places[:2]
        assert store.due(99, Due(7, "a")) == places[2:]
        assert store.due(99, Due(7, "b")) == places[2:]
        assert store.due(99, Due(2**63, "z")) == []
        assert store.due(0, Due(IN_MEMORY, "")) == []

    def test_a_host_moves_from_place_to_place(self, store: FrontierStore) -> None:
        """One change takes its old place away and gives it the new one; the same twice is as once."""
        store.apply(Changes(due=[("a", None, 5), ("b", None, IN_MEMORY)]))
        for _ in range(2):
            store.apply(Changes(due=[("a", 5, IN_MEMORY), ("b", IN_MEMORY, 9)]))
        assert store.due(9, Due(IN_MEMORY, "")) == [Due(IN_MEMORY, "a"), Due(9, "b")]
        assert store.is_due(Due(9, "b"))
        assert not store.is_due(Due(IN_MEMORY, "b"))
        assert not store.is_due(Due(5, "a"))
        store.apply(Changes(due=[("a", IN_MEMORY, None), ("b", 9, None)]))
        assert store.due(9, Due(IN_MEMORY, "")) == []

    def test_states_of_many_hosts_come_in_one_answer(self, store: FrontierStore) -> None:
        """In the order of the question, None for those without."""
        store.apply(Changes(hosts=[(f"h{number}", b"%d" % number) for number in range(5)]))
        assert store.packed_hosts(["h3", "none", "h0", "h3"]) == [b"3", None, b"0", b"3"]
        assert store.packed_hosts([]) == []


class MessageContract:
    """What holds for every ``FrontierStore``."""

    MOST = 2**62

    def all_of(self, store: FrontierStore, box: Box) -> list[tuple[int, bytes]]:
        """Every message of a box."""
        return store.messages.of(box, 0, self.MOST, self.MOST)

    def test_messages_are_numbered_in_the_order_of_their_coming(self, store: FrontierStore) -> None:
        """Over all partitions; those of one come back in order, whole, an empty one and one of a megabyte too."""
        mail, big = store.messages, bytes(range(256)) * 4096
        assert (mail.applied.last, mail.boxes(), mail.take_changed()) == (0, [], set())
        store.apply(Changes(messages=[(7, b"a"), (300, b""), (7, b"b")]))
        store.apply(Changes(messages=[(7, big)]))
        seven, other = Box(7, mail.outbox), Box(300, mail.outbox)
        assert len(mail.outbox) == 16
        assert (mail.applied.last, mail.boxes()) == (4, [seven, other])
        assert self.all_of(store, seven) == [(1, b"a"), (3, b"b"), (4, big)]
        assert self.all_of(store, other) == [(2, b"")]
        assert self.all_of(store, Box(8, mail.outbox)) == self.all_of(store, Box(7, bytes(16))) == []
        assert (mail.take_changed(), mail.take_changed()) == ({7, 300}, set())

    def test_a_slice_of_a_box_ends_where_it_is_to(self, store: FrontierStore) -> None:
        """Behind a number, up to a number, and with the message that fills it."""
        store.apply(Changes(messages=[(1, b"ten bytes."), (2, b""), (1, b"ten more.."), (1, b"the last")]))
        mail, box = store.messages, Box(1, store.messages.outbox)
        assert [number for number, _ in mail.of(box, 1, self.MOST, self.MOST)] == [3, 4]
        assert [number for number, _ in mail.of(box, 2, 3, self.MOST)] == [3]
        assert [number for number, _ in mail.of(box, 0, self.MOST, 1)] == [1]
        assert [number for number, _ in mail.of(box, 0, self.MOST, 11)] == [1, 3]
        assert mail.of(box, 0, self.MOST, 0) == mail.of(box, 4, self.MOST, 99) == mail.of(box, 3, 2, 99) == []

    def test_delivered_messages_go_one_by_one(self, store: FrontierStore) -> None:
        """Twice is as once; an emptied box is none; numbers go on."""
        store.apply(Changes(messages=[(1, b"a"), (1, b"b"), (2, b"c")]))
        mail = store.messages
        one, two = Box(1, mail.outbox), Box(2, mail.outbox)
        for _ in range(2):
            store.apply(Changes(delivered=[(one, 1), (two, 3), (Box(9, bytes(16)), 1)]))
        assert (mail.boxes(), self.all_of(store, one)) == ([one], [(2, b"b")])
        store.apply(Changes(delivered=[(one, 2)], messages=[(2, b"d")]))
        assert (mail.boxes(), self.all_of(store, two)) == ([two], [(4, b"d")])
        store.apply(Changes(delivered=[(two, 4)]))
        assert mail.boxes() == []

    def test_what_is_durable_is_known(self, store: FrontierStore) -> None:
        """As of the last sync; a change that is not about messages does not count, nor one that takes them away."""
        mail = store.messages
        assert mail.durable == Applied()
        store.apply(Changes(messages=[(1, b"a"), (2, b"b")]))
        assert (mail.applied, mail.durable) == (Applied(1, 2), Applied())
        store.sync()
        store.apply(Changes(read=[(Box(1, b"another outbox.."), 1)]))
        assert (mail.applied, mail.durable) == (Applied(2, 2), Applied(1, 2))
        store.apply(Changes(hosts=[("a", b"")], delivered=[(Box(1, mail.outbox), 1)]))
        store.sync()
        assert mail.applied == mail.durable == Applied(2, 2)

    def test_what_was_read_is_known_by_box(self, store: FrontierStore) -> None:
        """Of one partition and outbox; the last number of a change stays, and messages are not touched by it."""
        store.apply(Changes(messages=[(1, b"a")]))
        ours, theirs = Box(1, store.messages.outbox), Box(1, b"another outbox..")
        store.apply(Changes(read=[(theirs, 5), (theirs, 2**40), (Box(2, theirs.outbox), 7)]))
        assert [store.messages.read_up_to(box) for box in (ours, theirs, Box(2, theirs.outbox))] == [0, 2**40, 7]
        assert store.messages.boxes() == [ours]
        assert Changes(read=[(theirs, 1)])
        assert Changes(delivered=[(theirs, 1)])


class ContentContract:
    """What holds for every ``FrontierStore`` that is also a frontier's."""

    across_hosts = True  # whether texts of all hosts are compared

    def test_near_finds_all_that_are_near_and_nothing_else(self, store: FrontierStore) -> None:
        """Within a host and across hosts, as comparing with every fingerprint would; stored in two changes."""
        chance = random.Random(3)
        centres = [chance.getrandbits(64) for _ in range(40)]
        values = sorted({turned(centre, bits, chance) for centre in centres for bits in range(9)})
        prints = [Fingerprint(f"h{at % 3}", value, at.to_bytes(24, "big")) for at, value in enumerate(values)]
        store.apply(Changes(fingerprints=prints[:90]))
        assert store.near("h0", prints[0].value, 0) == [Near(0, prints[0].key)]  # a host once looked at grows, too
        store.apply(Changes(fingerprints=prints[90:]))

        for centre in centres:
            for host, bits in (("h0", 6), ("h1", 8), ("", 3), ("", 1), ("none", 64)):
                found = sorted(store.near(host, centre, bits))
                assert found == sorted(
                    Near(differ, made.key)
                    for made in prints
                    if (host or self.across_hosts)
                    and (differ := (made.value ^ centre).bit_count()) <= bits
                    and host in ("", made.host)
                )
                assert [near.bits for near in store.near(host, centre, bits)] == [near.bits for near in found]

    def test_the_extremes_of_fingerprints_are_found(self, store: FrontierStore) -> None:
        """All bits clear and all bits set: no range of rows leaves its ends out."""
        prints = [Fingerprint("a", value, bytes([value & 1]) * 24) for value in (0, 2**64 - 1)]
        store.apply(Changes(fingerprints=prints))
        for made in prints:
            assert store.near("a", made.value, 6) == [Near(0, made.key)]
            assert store.near("", made.value ^ (7 << 30), 3) == [Near(3, made.key)] * self.across_hosts

    def test_an_original_is_known_by_its_payloads_digest(self, store: FrontierStore) -> None:
        """Every field comes back; unknown digests have none."""
        original = Original(
            "<urn:uuid:12345678-1234-4234-8234-123456789abc>", "http://a/ü", "2026-11-21T10:11:12.123456Z"
        )
        store.apply(Changes(payloads=[(b"1" * 20, original)]))
        assert store.original(b"1" * 20) == original
        assert store.original(b"2" * 20) is None

"""Links on their way to the queue, natively and in Python: the same addresses, the same refusals, the same rows."""

from __future__ import annotations

import gc
import sys
from itertools import takewhile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlerproject import native
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.frontier.url_filters import HostsAtOnce, UrlFilters
from crawlerproject.parse.links import followed
from crawlerproject.reasons import Reason
from crawlerproject.rules.page.extract import LinkText, _resolved
from crawlerproject.rules.robots.matcher import Matcher, PathAccess, spelled
from crawlerproject.rules.robots.parser import Rule
from crawlerproject.rules.row_kinds import FLAG_EXTERNAL, FLAG_LISTED
from crawlerproject.rules.url.refused_urls import AddressRules, Exclusion
from crawlerproject.rules.url.scope import Scope
from crawlerproject.rules.url.urls import Address, Base, UrlRefused, parse
from crawlerproject.stores.protocols import QueuedPage
from crawlerproject.stores.rocks.rocks_queues import put_rows_in_python
from crawlerproject.stores.row_codec import pack_queued

pytestmark = pytest.mark.skipif(native.reader is None, reason=f"one way only: {native.choice.why}")

PAGES = (
    "http://h.test/", "https://h.test/a/b.html", "http://h.test:8080/x/?q=1", "http://ss.test/s/", "http://h.test./",
    "http://1.2.3.4/a", "http://xn--bcher-kva.test/", "http://h.test/a b/", "http://user@h.test/", "http://h.test/%61/",
)  # fmt: skip
PARTS = (
    "/", "a", "b.html", "B.PDF", "zip", ".", "..", "x~-_9", "h.test", "http://", "https://", "http://h.test", "?q=1",
    "http://h.test:8080", "://", "#f", "%20", "%41", ";jsessionid=1", "é", " ", "//", "www.h.test", "robots.txt",
)  # fmt: skip
PIECES = (
    "?", "a=1", "&", "&b=2&a", "utm_x=1", "sid=0123456789abcdef", "cfid=1", "cftoken=12345678", "=", "'", "(",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PARTS + PIECES), max_size=8).map("".join)
TARGETS = st.lists(TEXTS, max_size=12)


class Never:
    """Excludes one host."""

    def current(self, now: float) -> Exclusion:
        """The list."""
        return Exclusion({"never.test": 1})

    def listing(self, host_name: str, now: float) -> None:
        """Nothing is said of it."""


def in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "reader", None)


def reader() -> native.Page:
    """The native one."""
    assert native.reader is not None
    return native.reader


def row(url: str = "http://h.test/p", **more: Any) -> QueuedPage:
    """One of the queue."""
    address = parse(url)
    return QueuedPage(
        address.host, address.key, address.url, 3, 1_700_000_000_000_000, 1, "L", "http://h.test/", **more
    )


def addresses(urls: list[str]) -> list[Address]:
    """Those of them that are any."""
    found = []
    for url in urls:
        try:
            found.append(parse(url))
        except UrlRefused:
            continue
    return found


@given(page=st.sampled_from(PAGES), targets=TARGETS)
def test_links_mean_the_same(page: str, targets: list[str]) -> None:
    """Whatever they are made of, and whatever page they are on."""
    base = Base(page)
    own = base.own_key()
    due: dict[bytes, Address] = {}
    for target in targets:
        if (address := base.join(target)) is not None:
            due.setdefault(address.key, address)
    due.pop(own, None)

    found = base.addresses(targets, own)

    assert found == list(due.values())
    assert all(type(address) is Address for address in found)


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "http://o.test",
            "https://o.test:8443",
            "http://o.test:80",
            "http://O.test",
            "http://o.test.",
            "http://1.2.3",
        ),
        *("http://[::1]", "http://xn--bcher-kva.test", "http://strasse.test", "http://a@o.test", "http:///"),
    ],
)
def test_links_to_a_site_that_is_known(origin: str) -> None:
    """The second link of an origin is joined natively where the first one was written as it is fetched."""
    base = Base("http://h.test/a/b")
    for path in (
        "/first",
        "/second/x.html",
        "/third?b=1&a=2",
        "/UP?utm_x=1",
        "/..",
        "/%41",
        "/x#y z",
        "/x?b=1#?",
        "",
        "?q",
    ):
        written = origin + path
        assert base.addresses([written], b"") == addresses([written]), written


@given(page=st.sampled_from(PAGES), targets=TARGETS, rel=st.sampled_from(("", "nofollow", " NoFollow\xa0é")))
def test_links_of_a_search_index_are_the_same(page: str, targets: list[str], rel: str) -> None:
    """Their URLs, relations and places, and which is the canonical one."""
    found = [(target, "words", rel, target.endswith("a")) for target in targets]
    base = Base(page)

    links, canonical = reader().targets(found, base.target, LinkText, *base.beginnings())

    assert (links, canonical or "") == _resolved(found, Base(page))
    assert base.beginnings() in {("", ""), tuple("" if (end := base.join(each)) is None else end.url for each in "/.")}


@given(targets=TARGETS)
def test_what_is_found_is_the_same(targets: list[str]) -> None:
    """Depth, path, priority and flags of each link."""
    links = Base("http://h.test/a/").addresses([*targets, "http://other.test/", "http://a.h.test/x"], b"")
    found = followed(row(), links)
    with pytest.MonkeyPatch.context() as patch:
        in_python(patch)
        assert followed(row(), links) == found
    assert [item.flags for item in found[-2:]] == [FLAG_EXTERNAL, 0]


HOSTS = (
    "http://h.test/",
    "http://h.test:81/",
    "http://h.test:25/",
    "http://never.test/",
    "http://10.0.0.1/",
    "http://[::1]/",
)


@given(
    paths=st.lists(st.tuples(st.sampled_from(HOSTS), TEXTS), max_size=10),
    depth=st.integers(0, 3),
    flags=st.sampled_from([0, FLAG_LISTED, FLAG_EXTERNAL]),
    scope=st.sampled_from(["any", "host"]),
)
def test_the_gates_refuse_the_same(paths: list[tuple[str, str]], depth: int, flags: int, scope: Any) -> None:
    """By scope, never-crawl list, port, address, extension, depth, length and shape."""
    given = Scope(scope, ["h.test", "h.test:81"], max_depth=2, max_url_length=60)
    filters = UrlFilters(given, Never(), AddressRules(), max_urls_per_host=9, skip_extensions=["zip", "pdf"])
    urls = [f"{host}{path}" for host, path in paths] + [f"http://h.test/{'a/' * 3}", f"http://h.test/{'ab/' * 30}"]
    found = [
        DiscoveredUrl(address, depth, "L", "http://h.test/", 3, flags if place % 3 == 0 else 0)
        for place, address in enumerate(addresses(urls))
    ]

    def verdicts(page: native.Page | None) -> tuple[list[DiscoveredUrl], list[tuple[Reason, str]]]:
        hosts, refused = HostsAtOnce(), []

        def judged(item: DiscoveredUrl) -> bytes | None:
            refusal = filters.refusal(item, 0.0, hosts=hosts)
            if refusal is not None:
                refused.append((refusal, item.address.url))
            return item.address.key if refusal is None else None

        if page is not None:
            kept = page.allowed(found, hosts, judged, filters.extensions, given.max_depth, given.max_url_length)
            return list(kept.values()), refused
        ours: dict[bytes, DiscoveredUrl] = {}
        for item in found:
            if (key := judged(item)) is not None:
                ours.setdefault(key, item)
        return list(ours.values()), refused

    assert verdicts(reader()) == verdicts(None)


RULES = st.lists(
    st.tuples(st.booleans(), st.lists(st.sampled_from(["/", "a", "b", "B", "%", "?", "~", "*", "*", "$"]), max_size=6)),
    max_size=6,
)


@given(
    rules=RULES,
    paths=st.lists(st.lists(st.sampled_from(["a", "b", "B", "/", "?", "%41", "%C3", "~", "robots.txt"])), max_size=8),
)
def test_rules_allow_the_same(rules: list[tuple[bool, list[str]]], paths: list[list[str]]) -> None:
    """What is taken is allowed, and what is not taken and plain is refused."""
    matcher = Matcher([Rule(allow, "/" + "".join(pattern)) for allow, pattern in rules])
    for path in map("".join, paths):
        address = Address(f"http://h.test/{path}", b"", "h.test", "http")
        taken = reader().settled([DiscoveredUrl(address, 1, "L", "", 3)], 0, "http://h.test/", 1, matcher.index())
        odd = not path or "%41" in path or path.startswith("robots.txt")
        assert taken == (not odd and matcher.verdict(spelled("/" + path)) is PathAccess.ALLOW)


def test_rules_that_cost_too_much_are_left_to_python() -> None:
    """Of five thousand patterns none is tried; where a longer plain rule decides none has to be."""
    matcher = Matcher([*(Rule(False, f"/*{number}*x") for number in range(5_000)), Rule(True, "/plain/" + "a" * 40)])
    found = [DiscoveredUrl(parse(f"http://h.test/{path}"), 1, "L", "", 3) for path in ("plain/" + "a" * 50, "b")]
    assert reader().settled(found, 0, "http://h.test/", 9, matcher.index()) == 1
    assert matcher.verdict("/b") is PathAccess.ALLOW


def test_a_settled_host_takes_what_it_has_room_for() -> None:
    """From a place on, until one of another host, its front page, one with flags, or the end of the room."""
    urls = [
        "http://o.test/x",
        "http://h.test/1",
        "http://h.test/2/",
        "http://h.test/3",
        "http://h.test/",
        "http://h.test/4",
    ]
    found = [DiscoveredUrl(parse(url), 1, "L", "", 3) for url in urls]
    found.append(found[-1]._replace(flags=FLAG_LISTED))
    for start, room, due in [(0, 9, 0), (1, 9, 3), (2, 1, 1), (2, 0, 0), (2, -1, 0), (4, 9, 0), (5, 9, 1), (9, 9, 0)]:
        assert reader().settled(found, start, "http://h.test/", room, None) == due


@given(
    items=st.lists(
        st.tuples(
            st.sampled_from(["http://h.test/é", "http://h.test:81/", "http://o.test/x"]),
            st.sampled_from([0, 0, 0, FLAG_LISTED]),
        ),
        min_size=1,
        max_size=9,
    ),
    arrival=st.integers(0, 2**63),
)
def test_rows_are_made_the_same(items: list[tuple[str, int]], arrival: int) -> None:
    """Those of the first one's host, as they stand, one number after the other; none of one with flags."""
    found = [
        DiscoveredUrl(parse(url), 1, "L", "http://h.test/", place, flags) for place, (url, flags) in enumerate(items)
    ]
    for start in range(len(found)):
        due = [
            QueuedPage(
                item.address.host, item.address.key, item.address.url, item.priority, arrival + place, 1, "L", item.via
            )
            for place, item in enumerate(found[start:])
        ]
        alike = takewhile(lambda item: item.address.host == found[start].address.host and not item.flags, found[start:])  # noqa: B023
        rows = reader().rows(found, start, arrival, QueuedPage)
        assert rows == due[: len(list(alike))]
        assert all(type(row) is QueuedPage for row in rows)


@given(
    texts=st.lists(st.tuples(st.text(max_size=9), st.text(max_size=9), st.integers(0, 255), st.integers(0, 2**64 - 1))),
    last=st.binary(max_size=10),
)
def test_rows_are_packed_the_same(texts: list[tuple[str, str, int, int]], last: bytes) -> None:
    """Texts of any characters; the order of the puts, too."""
    rows = [
        QueuedPage(
            "h.test", bytes(24), url, priority, arrival, 7, "LR", via, 2, FLAG_EXTERNAL, "é" if priority % 2 else "n"
        )
        for url, via, priority, arrival in texts
    ]

    def way(put_rows: Any) -> tuple[list[tuple[object, ...]], dict[bytes, bytes]]:
        puts: list[tuple[object, ...]] = []
        return puts, put_rows(iter(rows), b"prefix\0", last, lambda *put: puts.append(put), 1, 2, pack_queued)

    assert way(reader().put_rows) == way(put_rows_in_python)


BASE: tuple[Any, ...] = ("http://h", "http://h", "h", "http", b"12345678", {}, {}, b"")
FOUND = DiscoveredUrl(parse("http://h.test/a"), 1, "", "", 3)
INDEX: tuple[Any, ...] = Matcher([Rule(False, "/*b*c"), Rule(False, "/x$")]).index()
PATTERNS: list[Any] = [
    (1,),
    (9, "", 1, (), "", 0, 0, 0),
    (9, "", "/", [], "", 0, 0, 0),
    ("x", "", "/", (), "", 0, 0, 0),
]
PATTERNS.append((9, "", "/", (1,), "", 0, 0, 0))
WRONG: tuple[list[Any], ...] = (
    [None, [1]],
    [(), []],
    [None, {"/a": "x"}],
    [None, [1], *([each] for each in PATTERNS)],
    ["x"],
    ["x"],
)
"""By their place in an index."""


@pytest.mark.parametrize(
    "call",
    [
        lambda: reader().addresses(["a"], lambda _: None, lambda _: b"short", Address, *BASE),
        lambda: reader().addresses(["a"], lambda _: None, bytes, int, *BASE),
        lambda: reader().targets([()], str, LinkText, "http://h.test/", "http://h.test/"),
        lambda: reader().targets([("a", "", "", False)], str, int, "http://h.test/", "http://h.test/"),
        lambda: reader().news([()], set(), set()),
        lambda: reader().allowed([("http://h.test/",)], {}, lambda _: b"", frozenset(), 1, 1),
        lambda: reader().settled([(1, 2)], 0, "http://h.test/", 1, INDEX),
        lambda: reader().settled([FOUND], 0, "http://h.test/", 1, ()),
        *(
            lambda place=place, value=value: reader().settled(
                [FOUND], 0, "http://h.test/", 1, (*INDEX[:place], value, *INDEX[place + 1 :])
            )
            for place, values in enumerate(WRONG)
            for value in values
        ),
        lambda: reader().rows([(1, 2)], 0, 1, QueuedPage),
        lambda: reader().rows([FOUND], 0, 1, int),
        lambda: reader().put_rows([(1, 2)], b"", b"", print, None, None, bytes),
        lambda: reader().followed([1], DiscoveredUrl),
    ],
)
def test_what_has_another_shape_is_an_error(call: Any) -> None:
    """No crash, and nothing is lost."""
    with pytest.raises((TypeError, ValueError)):
        call()


def test_an_error_of_what_is_asked_is_passed_on() -> None:
    """As it is."""

    def fails(*_: object) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        reader().addresses(["?"], fails, fails, Address, *BASE)
    with pytest.raises(ZeroDivisionError):
        reader().targets([("?", "", "", False)], fails, LinkText, "", "")
    with pytest.raises(ZeroDivisionError):
        reader().allowed([FOUND], {}, fails, frozenset(), 1, 1)
    with pytest.raises(ZeroDivisionError):
        reader().put_rows([row()], b"", b"", fails, None, None, pack_queued)


def test_nothing_is_left_behind() -> None:
    """Of four thousand links no object stays, and no count of a shared one grows."""
    base, shared = Base("http://h.test/a/"), ["x/y", "?q", "http://o.test/", "b.html", "c?z=1&y=2"]

    def once() -> None:
        found = followed(row(), base.addresses(shared, base.own_key()))
        fresh, _ = reader().news(found, {found[0].address.key}, set())
        hosts: HostsAtOnce = {"h.test": True}
        kept = reader().allowed(fresh, hosts, lambda item: item.address.key, frozenset({"pdf"}), 9, 99)
        reader().settled(list(kept.values()), 0, "http://h.test/", 9, INDEX)
        reader().rows(list(kept.values()), 0, 2**40, QueuedPage)
        reader().targets([(each, "w", "a B", True) for each in shared], base.target, LinkText, *base.beginnings())
        reader().put_rows([row()], b"p", b"\xff" * 10, lambda *_: None, None, None, pack_queued)

    once()
    gc.collect()
    before = sys.getallocatedblocks(), [sys.getrefcount(each) for each in (*shared, Address, DiscoveredUrl, b"", 0)]
    for _ in range(1_000):
        once()
    gc.collect()
    after = sys.getallocatedblocks(), [sys.getrefcount(each) for each in (*shared, Address, DiscoveredUrl, b"", 0)]
    assert after[0] - before[0] < 300
    assert all(abs(one - other) < 300 for one, other in zip(before[1], after[1], strict=True))

"""What a recrawl does with a URL in each state: the table in docs/recrawl.md, row by row."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from crawlerproject.frontier.learned.models import TrapModel
from crawlerproject.frontier.learned.revisits import DueRevisit, RevisitPolicy, Revisits, again, due
from crawlerproject.frontier.passage import Visit
from crawlerproject.reasons import Reason
from crawlerproject.rules.revisits.history import DAY_SECONDS, HostHistory
from crawlerproject.rules.row_kinds import FLAG_RECRAWL, FLAG_REQUISITE
from crawlerproject.rules.url.refused_urls import Exclusion
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, QueuedPage
from tests.frontier.conftest import Bench, drain
from tests.stores.memory_store import MemoryStore

PAGE = Path(__file__).resolve().parents[3] / "docs" / "recrawl.md"
HOST, URL = "a.test", "http://a.test/page"
TRAPPED = "http://a.test/list?page="
# Longer than the longest tier: what is to be visited again at all is due by then.
MONTH_SECONDS = 40 * DAY_SECONDS
DISALLOWED = b"User-agent: *\nDisallow: /\n"

# Answers and failures that end a visit, and the status that came with them.
NOT_OK = {
    Reason.REDIRECT: 302,
    Reason.HTTP_ERROR: 404,
    Reason.RATE_LIMITED: 503,
    Reason.CHALLENGE: 403,
    Reason.DNS_NOT_FOUND: None,
    Reason.CONNECT_REFUSED: None,
    Reason.TLS_CERTIFICATE: None,
    Reason.DISCONNECTED: None,
}


def visited(bench: Bench, reason: Reason, status: int | None, flags: int = 0) -> None:
    """A visit has ended so."""
    row = QueuedPage(HOST, parse(URL).key, URL, 2, 1, 2, "LL", "http://a.test/", 0, flags)
    revisits = Revisits(bench.store, random.Random(1), near_bits=3, check_share=0.0)
    record = revisits.learn(Visit(row, reason, status, b"d" * 20 if status else b""), bench.now)
    bench.store.apply(Changes(pages=[(row.page_key, record)]))


def chosen(bench: Bench) -> list[DueRevisit]:
    """What a recrawl chooses at this moment."""
    lists = due(bench.store.pages, lambda _: HostHistory(), bench.now, RevisitPolicy(None, 2 * DAY_SECONDS))
    return [page for some in lists for page in some]


def answered(bench: Bench, flags: int = 0) -> None:
    """It was there a month ago."""
    visited(bench, Reason.FETCHED, 200, flags)
    bench.now += MONTH_SECONDS


def changed(reason: Reason, status: int | None) -> Callable[[Bench], None]:
    """Its second visit ended otherwise than its first."""

    def state(bench: Bench) -> None:
        answered(bench)
        bench.frontier.admission.again([again(page, bench.now) for page in chosen(bench)], bench.now)
        visited(bench, reason, status, FLAG_RECRAWL)

    return state


def never(reason: Reason, status: int | None = None) -> Callable[[Bench], None]:
    """Its first visit ended so."""
    return lambda bench: visited(bench, reason, status)


def forbidden(bench: Bench) -> None:
    """Nothing of the host may be asked for."""
    bench.through_robots(DISALLOWED)
    assert drain(bench) == []


def known_and_forbidden(bench: Bench) -> None:
    """It was there, and waited to be visited again."""
    answered(bench)
    bench.frontier.admission.again([again(page, bench.now) for page in chosen(bench)], bench.now)
    forbidden(bench)


def known_and_excluded(bench: Bench) -> None:
    """The same, of a domain that asked to be left alone."""
    answered(bench)
    bench.frontier.admission.again([again(page, bench.now) for page in chosen(bench)], bench.now)
    bench.never.list = Exclusion.parse([HOST])[0]
    assert drain(bench) == []


def queued_and_forbidden(bench: Bench) -> None:
    """A link was queued before robots.txt was read."""
    assert bench.add(URL) == 1
    forbidden(bench)


def queued_and_excluded(bench: Bench) -> None:
    """A link was queued before its domain asked to be left alone."""
    assert bench.add(URL) == 1
    bench.never.list = Exclusion.parse([HOST])[0]
    assert drain(bench) == []


def queued_and_trapped(bench: Bench) -> None:
    """A link was queued before its template had shown to be a trap."""
    traps = bench.frontier.leasing._filters._traps = TrapModel(bench.store)
    assert bench.add(TRAPPED + "99") == 1
    for number in range(60):
        row = QueuedPage(HOST, parse(TRAPPED + str(number)).key, TRAPPED + str(number), 10, number + 1, 1, "L", "", 0)
        traps.learn(Visit(row, Reason.HTTP_ERROR, 404), bench.now)
    assert drain(bench) == []


def refused_link(bench: Bench) -> None:
    """A link is refused as it is found."""
    bench.never.list = Exclusion.parse([HOST])[0]
    assert bench.add(URL) == 0
    bench.commit()
    assert list(bench.store.pages()) == []


def requisite(bench: Bench) -> None:
    """A style sheet."""
    answered(bench, FLAG_REQUISITE)


# A row's first words -> URLs in that state, and whether a recrawl in another month chooses them.
STATES: dict[str, tuple[Iterable[Callable[[Bench], None]], bool]] = {
    "answered 200 once": ([answered, *(changed(*each) for each in NOT_OK.items())], True),
    "the same, forbidden by robots.txt or NeverCrawl": ([known_and_forbidden, known_and_excluded], True),
    "refused when a link named it": ([refused_link], False),
    "first answer not 200": ([never(*each) for each in NOT_OK.items()], True),
    "refused in its queue before any visit": ([queued_and_forbidden, queued_and_excluded], True),
    "refused in its queue as a trap's": ([queued_and_trapped], False),
    "set aside as poison at its first visit": ([never(Reason.POISON)], False),
    "page requisites": ([requisite], True),
}


def rows() -> list[str]:
    """The states that the page names."""
    table = PAGE.read_text().partition("## What a recrawl visits")[2]
    return re.findall(r"^\| (.+?) \|", table, flags=re.MULTILINE)[1:]


def test_the_page_names_these_states() -> None:
    """Each row is tried here, in the same order, and no other."""
    found = rows()

    assert len(found) == len(STATES)
    assert all(row.startswith(state) for row, state in zip(found, STATES, strict=True))


@pytest.mark.parametrize("name", STATES)
def test_a_recrawl_does_what_the_page_says(name: str) -> None:
    """A month after a URL came into that state, when nothing is forbidden any more."""
    states, expected = STATES[name]
    for state in states:
        bench = Bench(MemoryStore())
        state(bench)
        bench.now += MONTH_SECONDS
        assert [page.record.url for page in chosen(bench)] == [URL] * expected


@pytest.mark.parametrize("status", [302, 404, 500])
def test_an_error_leaves_a_tenth_of_the_weight(status: int) -> None:
    """Of what a visit is worth to the same page while it answers."""
    bench = Bench(MemoryStore())
    answered(bench)
    [good] = chosen(bench)
    bench.store.apply(Changes(pages=[(good.key, good.record._replace(status=status))]))

    [gone] = chosen(bench)

    assert gone.score == pytest.approx(good.score / 10)

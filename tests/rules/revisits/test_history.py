"""What is remembered of visits survives the store and learns from each of them."""

import numpy as np
import pytest

from crawlerproject.rules.revisits.change_rate import RATES, Belief, Numbers, unpacked
from crawlerproject.rules.revisits.history import FEED, SITEMAP, Found, History, HostHistory, next_visit
from crawlerproject.rules.revisits.refetch import DAY_SECONDS, Change, Trust

NOW = 1_800_000_000.0
ONCE = History(visits=1, seen_at=NOW)


def rate(belief: Belief) -> Numbers:
    """Changes a day to be expected."""
    expected: Numbers = np.exp(belief @ np.log(RATES))
    return expected


def test_histories_survive_packing() -> None:
    """Every field; a sitemap's origin and a belief together."""
    full = History(SITEMAP, 2, 7, NOW, NOW + 1, NOW + 2, 1.5, 1.0, 2**63, bytes(range(1, 13)), "http://ü.test")
    host = HostHistory(Trust(1, 2, 3, 4), 5, 6, 7, tuple(float(number) for number in range(12)))

    assert History.unpack(full.pack()) == full
    assert History.unpack(ONCE.pack()) == ONCE
    assert HostHistory.unpack(host.pack()) == host
    loosened = host._replace(loosened_at=NOW)
    assert HostHistory.unpack(loosened.pack()) == loosened
    assert loosened.pack().startswith(host.pack())  # what has no such moment is as earlier versions wrote it


@pytest.mark.parametrize("kept", [b"", b"\x00", b"\xff" * 80])
def test_what_cannot_be_read_is_as_if_nothing_were_known(kept: bytes) -> None:
    """Nothing, something torn, another version's."""
    assert History.unpack(kept) == History()
    assert HostHistory.unpack(kept) == HostHistory()


def test_changes_raise_the_page_and_its_host() -> None:
    """A page that changed at each visit is believed to be quick, and so is the next new page of its host."""
    history, host = ONCE, HostHistory()
    for visit in range(1, 6):
        history, host = next_visit(history, host, Found(Change.CHANGED, NOW + visit * DAY_SECONDS, 0, 0))
    quiet, calm = next_visit(ONCE, HostHistory(), Found(Change.UNCHANGED, NOW + 30 * DAY_SECONDS, 0, 0))

    assert history.visits == 6
    assert rate(unpacked(history.belief)) > 10 * rate(unpacked(quiet.belief))
    assert rate(host.prior()) > rate(calm.prior())
    assert (host.pages, calm.pages) == (1, 1)


def test_an_error_teaches_nothing_but_ends_the_waiting() -> None:
    """The page may be chosen again; its content is as old as before."""
    waiting = ONCE._replace(queued_at=NOW + 5, kind=FEED)

    later, host = next_visit(waiting, HostHistory(), Found(Change.UNKNOWN, NOW + 9, 0, 3))

    assert later == waiting._replace(queued_at=0.0)
    assert host == HostHistory()


def test_dates_of_lists_are_believed_as_long_as_half_are_right() -> None:
    """Announcements that came to nothing count against the host."""
    announced = ONCE._replace(announced=1.0)
    host = HostHistory()
    for _ in range(3):
        _, host = next_visit(announced, host, Found(Change.UNCHANGED, NOW + DAY_SECONDS, 0, 0))
    assert not host.believes_lastmod

    for _ in range(2):
        _, host = next_visit(announced, host, Found(Change.CHANGED, NOW + DAY_SECONDS, 0, 0))
    assert host.believes_lastmod

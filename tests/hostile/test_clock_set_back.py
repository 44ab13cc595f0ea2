"""A machine whose clock was two days ahead and is set right between two runs: no host waits for those days."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from crawlerproject.frontier.hosts.host import Host
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.clock_set_back import Longest
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.frontier.conftest import Bench
from tests.hostile.arena import arena
from tests.hostile.ledger import pays

DAYS = 2 * 86_400.0
AHEAD = f"""
import time
_right = time.time
time.time = lambda: _right() + {DAYS}
"""


def test_a_crawl_goes_on_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run asks the same host within its pace, and says what it found."""
    (tmp_path / "ahead").mkdir()
    (tmp_path / "ahead" / "sitecustomize.py").write_text(AHEAD)
    with arena(tmp_path / "web") as web:
        seed = web.innocent()
        with monkeypatch.context() as clock:
            clock.setenv("PYTHONPATH", str(tmp_path / "ahead"))
            web.crawl(seed, until=lambda: len(web.of("innocent.test")) >= 5)
        set_right, asked = time.time(), len(web.of("innocent.test"))

        crawled = web.crawl(seed, until=lambda: len(web.of("innocent.test")) >= asked + 10, seconds=30)

        first = next(visit for visit in web.of("innocent.test") if visit.start > set_right)
        late = first.start - set_right  # a start, and its pace
        pays("a clock that is set back by days", "the site", late, "s of waiting", at_most=15)
        assert "The clock was set back since the last commit: 1 host would have waited" in crawled.log


@pytest.mark.parametrize(
    ("ending", "least", "most"),
    [
        ({"status": 200}, 4.9, 5.2),
        ({"status": 200, "body": b"User-agent: *\nCrawl-delay: 300\n"}, 299, 307),
        ({"status": 429, "retry_after_seconds": 1800.0}, 1799, 1801),
        ({"status": 503}, 53, 67),  # the first rest of a back-off
        ({"status": None, "reason": Reason.CONNECT_REFUSED}, 3599, 3961),
    ],
    ids=["pause", "crawl-delay", "retry-after", "back-off", "no connection"],
)
def test_each_wait_is_cut_to_its_own_length(
    tmp_path: Path, ending: dict[str, Any], least: float, most: float, caplog: pytest.LogCaptureFixture
) -> None:
    """Pause, floor, rests: as long as they were to last, from the start on, and one warning."""
    store = RocksStore(tmp_path / "frontier")
    now = 1_000_000.0
    before = Bench(store, now=now + DAYS)
    before.add("http://a.example/1", "http://a.example/2")
    lease = before.next()
    assert lease is not None
    before.answer(lease, **ending)
    before.commit()

    after = Bench(store, now=now, longest=Longest())

    host = after.frontier.workbench.hosts["a.example"]
    assert least <= host.next_free - now <= most
    assert host.robots_until("http") <= now + 86_400.0
    assert [record.message for record in caplog.records if "set back" in record.message] != []
    after.now = host.next_free
    assert after.next() is not None
    store.close()


def test_a_clock_that_is_right_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A rest of a day, an hour later: what is left of it is kept, and nothing is said."""
    store = RocksStore(tmp_path / "frontier")
    before = Bench(store, now=1000.0)
    before.add("http://a.example/1")
    lease = before.next()
    assert lease is not None
    before.answer(lease, 429, retry_after_seconds=86_400.0)
    before.commit()
    kept = Host.unpack("a.example", store.host("a.example") or b"").next_free

    after = Bench(store, now=4600.0, longest=Longest())

    assert after.frontier.workbench.hosts["a.example"].next_free == kept
    assert "set back" not in caplog.text
    store.close()


def test_an_unclean_end_in_the_future_holds_nothing_up(tmp_path: Path) -> None:
    """Until when hosts may have been asked without a trace is at most the start."""
    store = RocksStore(tmp_path / "frontier")
    Bench(store, now=1000.0 + DAYS, clean=False)
    after = Bench(store, now=1000.0, longest=Longest())

    after.add("http://a.example/1")

    after.now += 6.0
    assert after.next() is not None
    store.close()

"""How a page ends: in the archive, in the log, in the frontier, or nowhere while there is no room."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawlerproject.errors import StorageError
from crawlerproject.frontier.passage import DiscoveredUrl
from crawlerproject.frontier.subrequests import Subrequest
from crawlerproject.reasons import Reason
from crawlerproject.rules.politeness.pauses import JITTER_SHARE
from crawlerproject.rules.revisits.history import REQUISITE, History
from crawlerproject.rules.row_kinds import FLAG_REQUISITE, requisite_key
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.logs.request_log import read_log
from tests.crawl.sessions import HOST, Bench, page_of


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A session with two pages queued."""
    bench = Bench(tmp_path)
    bench.add(f"{HOST}/one", f"{HOST}/two")
    return bench


def no_room(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the archive takes nothing."""

    def refuse(*given: object) -> None:
        raise StorageError("no room")

    monkeypatch.setattr(bench.session.archive.warc, "append", refuse)


def test_a_page_is_archived_logged_and_over(bench: Bench) -> None:
    """Its record, its line and its fate agree."""
    lease = bench.page_lease()
    bench.session.pages.finish(page_of(lease, bench.now, body=b"hello"))
    bench.commit()

    record = bench.store.page(lease.row.key)
    line = list(read_log(bench.folder.log))[-1]
    assert lease.ended
    assert record is not None
    assert (record.reason, record.status, record.url) == (Reason.FETCHED, 200, f"{HOST}/one")
    assert (line["url"], line["reason"], line["status"], line["ip"]) == (f"{HOST}/one", "fetched", 200, "192.0.2.1")
    assert line["warc"].endswith(".warc.gz")
    assert bench.frontier.state.leased == 0


@pytest.mark.parametrize("truncated", ["", "length"])
def test_pauses_begin_where_the_answer_ended(bench: Bench, truncated: str) -> None:
    """Not where its page was read and compared: what other workers know of that may be far away.

    One that was broken off, of which the server may have sent more, counts until its page ends.
    """
    page = page_of(bench.page_lease(), bench.now)
    assert page.wire is not None
    page.wire.truncated, host = truncated, page.lease.host
    bench.session.pages.asks_redis = True  # as a worker over Redis
    bench.now += host.delay_seconds / 2
    bench.session.pages.finish(page)
    began = bench.now if truncated else page.wire.ended_at
    waited = bench.page_lease().leased_at - began
    assert host.delay_seconds <= waited <= host.delay_seconds * (1 + JITTER_SHARE) + 0.1


def test_what_is_counted(bench: Bench) -> None:
    """Pages by reason, bytes, errors; a robots.txt is no page."""
    bench.session.pages.finish(page_of(bench.page_lease(), bench.now))
    failed = page_of(bench.lease(), bench.now, reason=Reason.CONNECT_REFUSED, status=0)
    bench.session.pages.finish(failed)

    tallies = bench.run.tallies
    assert (tallies.pages, tallies.errors) == (1, 1)
    assert tallies.bytes == bench.stats["bytes/received"] > 0
    assert bench.stats["pages/fetched"] == bench.stats["pages/connect-refused"] == 1
    assert tallies.as_dict()["statuses"] == {"200": 1, "404": 1}


def test_a_cut_answer_is_counted_by_its_cause(bench: Bench) -> None:
    """For the one who watches: what was too long, too slow, broken off."""
    page = page_of(bench.page_lease(), bench.now)
    assert page.wire is not None
    page.wire.truncated = "length"
    bench.session.pages.finish(page)

    assert bench.stats["truncated/length"] == 1


def test_the_same_bytes_are_archived_once(bench: Bench) -> None:
    """The second capture is a revisit, before and after a commit."""
    for _ in range(2):
        bench.session.pages.finish(page_of(bench.page_lease(), bench.now, body=b"the same" * 100))
    bench.add(f"{HOST}/three")
    bench.commit()
    bench.session.pages.finish(page_of(bench.page_lease(), bench.now, body=b"the same" * 100))
    bench.close()

    index = "".join(path.read_text() for path in bench.folder.index.glob("*.cdxj"))
    assert index.count("warc/revisit") == 2
    assert len({line["digest"] for line in read_log(bench.folder.log) if line["status"] == 200}) == 1


def test_without_room_a_page_waits_and_the_crawl_pauses(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lease stands; with room it ends as if nothing had been."""
    lease = bench.page_lease()
    with monkeypatch.context() as full:
        no_room(bench, full)
        bench.session.pages.finish(page_of(lease, bench.now))
        assert bench.run.paused == "no room"
        assert not lease.ended
        with pytest.raises(StorageError):
            bench.session.pages.write_again()

    bench.session.write_again(bench.now)
    assert lease.ended
    bench.commit()
    assert bench.store.page(lease.row.key) is not None


def test_pages_without_room_are_forgotten_when_they_are_anothers(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """They go back into the queue as if they had never been leased."""
    lease = bench.page_lease()
    no_room(bench, monkeypatch)
    bench.session.pages.finish(page_of(lease, bench.now))
    bench.session.pages.discard_uncommitted()

    assert lease.ended
    assert bench.frontier.state.leased == 0
    assert bench.page_lease().row.url == lease.row.url


def test_after_a_loss_no_page_ends(bench: Bench) -> None:
    """Another worker may have it: nothing of it is archived, and it waits again."""
    lease = bench.page_lease()
    bench.run.lose("a partition was taken")
    bench.session.pages.finish(page_of(lease, bench.now))

    assert lease.ended
    assert bench.run.tallies.pages == 0
    assert bench.stats["pages/fetched"] == 0


@pytest.mark.parametrize("rejoins", [True, False])
def test_a_store_that_says_nothing_while_a_page_ends(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, rejoins: bool
) -> None:
    """In a fleet the session is lost, and the page with it; alone the error is a fault of ours."""
    bench.run.rejoins = rejoins
    lease = bench.page_lease()

    def gone(*given: object) -> None:
        raise StorageError("Redis is away")

    monkeypatch.setattr(bench.frontier, "finish", gone)
    if not rejoins:
        with pytest.raises(StorageError):
            bench.session.pages.finish(page_of(lease, bench.now))
        return
    bench.session.pages.finish(page_of(lease, bench.now))

    assert bench.run.lost == "Redis is away"
    assert lease.ended


def test_a_page_that_has_ended_is_not_put_back(bench: Bench) -> None:
    """A fault after the end does not queue it again."""
    lease = bench.page_lease()
    page = page_of(lease, bench.now)
    bench.session.pages.finish(page)
    bench.session.pages.requeue(lease)
    bench.commit()

    assert bench.store.page(lease.row.key) is not None
    assert bench.page_lease().row.url == f"{HOST}/two"


def test_a_retry_after_counts_up_to_the_longest(tmp_path: Path) -> None:
    """RETRY_AFTER_MAX_SECONDS bounds what a server may ask for."""
    bench = Bench(tmp_path, RETRY_AFTER_MAX_SECONDS=600)
    bench.add(f"{HOST}/one")
    lease = bench.page_lease()
    bench.session.pages.finish(page_of(lease, bench.now, status=503, retry_after="864000"))

    assert 500 < lease.host.rest_until - bench.now <= 700


def test_how_long_a_host_was_busy_and_left_alone(bench: Bench) -> None:
    """The pause that was kept is tallied against the one that was promised."""
    first = bench.page_lease()
    bench.session.pages.finish(page_of(first, bench.now))
    second = bench.page_lease()
    bench.session.pages.finish(page_of(second, bench.now))

    tallied = bench.run.tallies.as_dict()
    assert first.host.answered_at == bench.now
    assert sum(tallied["pause_excess_seconds"]["counts"]) == 2  # from robots.txt, from the first page
    assert tallied["short_pauses"] == 0


def required(bench: Bench, url: str) -> int:
    """Queue a requisite of the front page."""
    found = DiscoveredUrl(parse(url), 0, "E", f"{HOST}/", 3, FLAG_REQUISITE)
    return bench.frontier.add([found], bench.now)


def test_a_requisite_is_no_page(tmp_path: Path) -> None:
    """Not counted as one; a link to it is no news, from its end on and after a commit. A recrawl knows what it is."""
    bench, url = Bench(tmp_path, REQUISITES="page"), f"{HOST}/style.css"
    required(bench, url)
    lease = bench.page_lease()
    bench.session.pages.finish(page_of(lease, bench.now, body=b"a{}", mime="text/css"))

    assert bench.add(url) == required(bench, url) == 0
    bench.commit()
    record = bench.store.page(parse(url).key)
    assert record is not None
    assert (record.reason, record.status) == (Reason.FETCHED, 200)
    assert History.unpack(record.history)[:3] == (REQUISITE, 1, 1)  # kind, embeddings, visits
    assert bench.run.tallies.pages == lease.host.pages == lease.host.known == 0
    assert bench.stats["requisites/fetched"] == 1


def test_a_requisite_that_is_a_document_may_still_be_a_page(tmp_path: Path) -> None:
    """Its record is its own, so that a link to it is news."""
    bench, url = Bench(tmp_path, REQUISITES="page"), f"{HOST}/frame"
    required(bench, url)
    bench.session.pages.finish(page_of(bench.page_lease(), bench.now, mime="text/html"))
    bench.commit()

    key = parse(url).key
    assert bench.store.page(key) is None
    apart = bench.store.page(requisite_key(key))
    assert apart is not None
    assert apart.history == b""  # as a requisite it is not visited again
    assert required(bench, url) == 0
    assert bench.add(url) == 1


def test_a_page_that_waits_is_no_requisite(tmp_path: Path) -> None:
    """Named as a page first, or together with it, or after it."""
    bench, url = Bench(tmp_path, REQUISITES="page"), f"{HOST}/one"
    both = [DiscoveredUrl(parse(f"{HOST}/two"), 1, hops, HOST, 9, flags) for hops, flags in (("E", 256), ("L", 0))]

    assert (bench.add(url), required(bench, url)) == (1, 0)
    assert bench.frontier.add(both, bench.now) == 1
    assert (required(bench, f"{HOST}/three"), bench.add(f"{HOST}/three")) == (1, 1)
    asked = []
    for _ in range(3):
        lease = bench.page_lease()
        asked.append((lease.row.url, lease.row.flags))
        bench.session.pages.finish(page_of(lease, bench.now))
    assert sorted(asked) == [(f"{HOST}/{name}", 0) for name in ("one", "three", "two")]


def test_what_the_browser_was_given_is_not_asked_for_again(tmp_path: Path) -> None:
    """A page as its scripts leave it names them among what it needs."""
    bench, url = Bench(tmp_path, REQUISITES="page"), f"{HOST}/app.js"
    bench.add(f"{HOST}/page")
    page = bench.page_lease()
    silent = lambda *answer: None  # noqa: E731 - three callbacks of no interest
    asked = Subrequest(parse(url), page.row, bench.now + 60, True, {}, "", 10.0, silent, silent, silent)
    bench.session.pages.finish(page_of(page, bench.now))
    assert bench.frontier.subrequests.ask(asked, bench.now) is None
    lease = bench.page_lease()
    assert lease.subrequest is asked
    bench.session.pages.finish(page_of(lease, bench.now))

    assert required(bench, url) == 0
    assert required(bench, f"{HOST}/other.js") == 1

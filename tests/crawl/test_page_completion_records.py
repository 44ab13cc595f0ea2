"""What of a page is recorded, and which capture stands for another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from crawlerproject.crawl.page_completion import CrawlRecords
from crawlerproject.inspection.robots_opinions import robots_versions
from crawlerproject.items import LeaseResult
from crawlerproject.reasons import Reason
from crawlerproject.rules.archive.withdrawal import State, Withdrawal
from crawlerproject.rules.row_kinds import FLAG_HUB
from crawlerproject.stores.operator_files.watched_lists import RELOAD_SECONDS, add_lines
from tests.crawl.sessions import HOST, Bench, page_of


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A session with two pages queued."""
    bench = Bench(tmp_path)
    bench.add(f"{HOST}/one", f"{HOST}/two")
    return bench


def records(bench: Bench) -> CrawlRecords:
    """The session's own."""
    return CrawlRecords(bench.session.archive, bench.frontier, bench.session.models.duplicates)


def test_nothing_received_is_nothing_archived(bench: Bench) -> None:
    """A host that refused the connection; an answer without a status; a hub's."""
    lease = bench.page_lease()
    hub = page_of(lease, bench.now)
    hub.lease = replace(lease, row=lease.row._replace(flags=FLAG_HUB))

    assert records(bench).write(LeaseResult.failed(lease, Reason.CONNECT_REFUSED)) is None
    assert records(bench).write(page_of(lease, bench.now, status=0)) is None
    assert records(bench).write(hub) is None


def test_a_fetched_robots_txt_is_archived(bench: Bench) -> None:
    """The version that held then, for an owner who asks; it has no file of its own."""
    lease = bench.lease()
    assert lease.row.kind.is_robots
    bench.session.pages.finish(page_of(lease, bench.now, body=b"User-agent: *\nAllow: /\n"))
    bench.commit()

    (version,) = robots_versions([bench.folder], lease.row.note)
    assert version.body == b"User-agent: *\nAllow: /\n"
    assert not bench.folder.robots_copies.exists()


def test_not_modified_refers_to_what_was_captured(bench: Bench) -> None:
    """The 304 of a known page is a revisit of its last capture."""
    lease = bench.page_lease()
    bench.session.pages.finish(page_of(lease, bench.now, body=b"the first"))
    bench.commit()
    known = bench.store.page(lease.row.page_key)
    assert known is not None
    unchanged = page_of(lease, bench.now, status=304, body=b"", reason=Reason.NOT_MODIFIED)
    records(bench).write(unchanged)
    bench.close()

    index = "".join(path.read_text() for path in bench.folder.index.glob("*.cdxj"))
    assert index.count("warc/revisit") == 1


def test_the_browser_gets_a_record_of_its_own(bench: Bench) -> None:
    """A shell whose bytes are known is written whole: the browser is given this very record."""
    bench.session.pages.finish(page_of(bench.page_lease(), bench.now, body=b"shell"))
    shell = page_of(bench.page_lease(), bench.now, body=b"shell", shell=(0, 0))
    written = records(bench).write(shell)
    plain = page_of(shell.lease, bench.now, body=b"shell")
    revisit = records(bench).write(plain)

    assert written is not None
    assert revisit is not None
    assert written.digest == revisit.digest
    assert written.length > 0
    bench.close()
    index = "".join(path.read_text() for path in bench.folder.index.glob("*.cdxj"))
    assert index.count("warc/revisit") == 1


def test_what_was_withdrawn_stands_for_nothing(bench: Bench) -> None:
    """Bytes that are known of a page that was asked back are kept once more, and later captures refer to these."""
    first = bench.page_lease()
    bench.session.pages.finish(page_of(first, bench.now, body=b"the same"))
    add_lines(bench.folder.withdrawn, Withdrawal(first.row.url, "2026-11-28", State.WITHDRAWN, "asked").line())
    bench.now += RELOAD_SECONDS + 1
    second = bench.page_lease()
    records(bench).write(page_of(second, bench.now, body=b"the same"))
    records(bench).write(page_of(second, bench.now, body=b"the same"))
    bench.close()

    rows = [orjson.loads(line.split(b" ", 2)[2]) for line in index_of(bench)]
    of_second = [row["mime"] == "warc/revisit" for row in rows if row["url"] == second.row.url]
    assert sorted(of_second) == [False, True]
    assert first.row.url not in {row["url"] for row in rows}


def index_of(bench: Bench) -> list[bytes]:
    """All lines."""
    return [line for path in bench.folder.index.glob("*.cdxj") for line in path.read_bytes().splitlines()]

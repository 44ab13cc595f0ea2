"""A frontier looked at while another process writes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from crawlerproject.errors import OperatorError
from crawlerproject.stores.protocols import Changes, PageRecord, QueuedPage
from crawlerproject.stores.rocks.rocks_store import FrontierView, RocksStore

PROJECT = Path(__file__).resolve().parents[3]

# Another process that queues rows until it is stopped: enough of them that files come and go meanwhile.
WRITER = """
import sys
from crawlerproject.stores.protocols import Changes, QueuedPage
from crawlerproject.stores.rocks.rocks_store import RocksStore
store = RocksStore(sys.argv[1])
number = 0
while True:
    rows = [QueuedPage(f"h{i % 50}.test", b"%024d" % i, "http://x/" + "y" * 400, 1, i, 0, "", "")
            for i in range(number, number + 2000)]
    store.apply(Changes(queued=rows, hosts=[(row.host, b"state") for row in rows[:50]]))
    number += 2000
    print(number, flush=True)
"""


def row(number: int, host: str = "a.test") -> QueuedPage:
    """A queued page."""
    return QueuedPage(host, b"%024d" % number, f"http://{host}/{number}", 1, number, 0, "", "")


def test_it_answers_as_the_store_does_and_leaves_it_its_lock(tmp_path: Path) -> None:
    """Rows, pages, hosts and facts of an open store are seen; what comes later is seen by the next view."""
    store = RocksStore(tmp_path / "frontier")
    record = PageRecord("http://a.test/0", "fetched", 200, 1.0)
    store.apply(
        Changes(
            queued=[row(2), row(1)], pages=[(b"%024d" % 0, record)], hosts=[("a.test", b"A"), ("b.test", b"B")],
            robots=[("http://a.test", b"R")], facts=[("warc", b"W")],
        )
    )  # fmt: skip

    with FrontierView(tmp_path / "frontier") as view:
        store.apply(Changes(queued=[row(3)]))
        assert [page.arrival for page in view.queue("a.test")] == [1, 2]
        assert view.page(b"%024d" % 0) == record
        assert list(view.hosts()) == [("a.test", b"A"), ("b.test", b"B")]
        assert (view.robots("http://a.test"), view.fact("warc")) == (b"R", b"W")
        assert view.known([b"%024d" % 1, b"%024d" % 3]) == [True, False]
        assert not hasattr(view, "apply")
    with FrontierView(tmp_path / "frontier") as view:
        assert [page.arrival for page in view.queue("a.test")] == [1, 2, 3]
    store.apply(Changes(queued=[row(5)]))
    store.close()


def test_a_look_changes_nothing(tmp_path: Path) -> None:
    """No file of the folder is written, made or removed, and none is left elsewhere for long."""
    folder = tmp_path / "frontier"
    store = RocksStore(folder)
    store.apply(Changes(queued=[row(1)]))
    store.close()

    def files() -> dict[str, tuple[int, int, int]]:
        return {path.name: (made.st_ino, made.st_mtime_ns, made.st_size) for path in folder.iterdir()
                if (made := path.stat())}  # fmt: skip

    before = files()
    with FrontierView(folder) as view:
        assert [page.arrival for page in view.queue("a.test")] == [1]

    assert files() == before


def test_a_busy_writer_does_not_disturb_it(tmp_path: Path) -> None:
    """Opened again and again beside a process that fills and compacts files: each view is whole and later."""
    folder = tmp_path / "frontier"
    with subprocess.Popen([sys.executable, "-c", WRITER, folder], cwd=PROJECT, stdout=subprocess.PIPE) as writer:
        try:
            assert writer.stdout is not None
            writer.stdout.readline()
            counts = []
            for _ in range(6):
                with FrontierView(folder) as view:
                    counts.append(sum(1 for _ in view.queue("h7.test")))
            assert writer.poll() is None
        finally:
            writer.kill()

    assert counts == sorted(counts)
    assert counts[-1] > counts[0] > 0


def test_what_is_no_crawl_is_said_in_a_sentence(tmp_path: Path) -> None:
    """A folder without a frontier, or of a newer version, is an operator's error; nothing is made there."""
    with pytest.raises(OperatorError, match="is not the folder of a crawl"):
        FrontierView(tmp_path / "frontier")
    assert list(tmp_path.iterdir()) == []
    store = RocksStore(tmp_path / "frontier")
    store.apply(Changes(facts=[("format", b"99")]))
    store.close()
    with pytest.raises(OperatorError, match="newer version"):
        FrontierView(tmp_path / "frontier")

"""A frontier of an earlier run of which a part cannot be read."""

from __future__ import annotations

from pathlib import Path

from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import Changes, QueuedPage
from crawlerproject.stores.rocks.rocks_store import RocksStore
from tests.web.running import HASTE, crawl_command, measured, small_settings, synthetic_web

_STOPPED_BY_ERRORS = 70
_ROWS = 6000  # enough for many blocks on the disk
_HOSTS = 300  # more than are taken up before the start is over


def test_a_host_that_cannot_be_taken_up_stops_the_crawl(tmp_path: Path) -> None:
    """It comes after the start: the crawl says so, ends in good order with an error, and loses nothing."""
    with synthetic_web(tmp_path / "web", "--profile", "broad", "--hosts", str(_HOSTS)) as web:
        urls = (web.folder / "seeds.txt").read_text().split()
        (tmp_path / "seeds.txt").write_text(urls[0])
        rows = [
            QueuedPage(address.host, address.key, address.url, 1, number, 0, "", "")
            for number, address in enumerate(map(parse, urls), 1)
        ]
        store = RocksStore(tmp_path / "crawl" / "frontier")
        store.apply(Changes(queued=rows))
        last = list(store.hosts_with_work())[-1]
        store.apply(Changes(hosts=[(last, b"\x03no state of a host")]))
        store.close()

        command = crawl_command(tmp_path / "seeds.txt", tmp_path / "crawl", web.folder / "hosts", small_settings(web))
        ended = measured(command, tmp_path / "crawl.log").status

    output = (tmp_path / "crawl.log").read_text()
    assert ended == _STOPPED_BY_ERRORS, output[-3000:]
    assert "the hosts of an earlier run could not be taken up; the crawl stops" in output
    assert "loading_failed" in output
    store = RocksStore(tmp_path / "crawl" / "frontier")
    assert last in store.hosts_with_work()
    assert all(store.known([row.key for row in rows]))
    store.close()


def test_a_bad_block_is_not_the_end_of_the_queues(tmp_path: Path) -> None:
    """What RocksDB cannot read looks like the last row: the crawl stops with the cure, instead of forgetting hosts."""
    store = RocksStore(tmp_path / "crawl" / "frontier")
    urls = [parse(f"http://h{number % 2000}.test/{number:060d}") for number in range(1, _ROWS)]
    rows = [QueuedPage(each.host, each.key, each.url, 1, number, 0, "", "") for number, each in enumerate(urls, 1)]
    store.apply(Changes(queued=rows))
    store._tables.queue.flush()
    store.close()
    table = max((tmp_path / "crawl" / "frontier").glob("*.sst"), key=lambda path: path.stat().st_size)
    with table.open("r+b") as file:
        file.seek(table.stat().st_size * 9 // 10)
        file.write(b"no rows")
    (tmp_path / "seeds.txt").write_text("http://h0.test/")
    (tmp_path / "hosts").touch()

    command = crawl_command(tmp_path / "seeds.txt", tmp_path / "crawl", tmp_path / "hosts", HASTE)
    ended = measured(command, tmp_path / "crawl.log").status

    output = (tmp_path / "crawl.log").read_text()
    assert ended == _STOPPED_BY_ERRORS, output[-3000:]
    assert f"scrapy recover {tmp_path / 'crawl'} makes it again from the archive. The crawl stops." in output
    assert "Closing spider (frontier_damaged)" in output

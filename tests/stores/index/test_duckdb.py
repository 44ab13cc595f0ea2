"""Common Crawl's way of asking, on our Parquet: DuckDB with the table's path and nothing else of ours."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from crawlerproject.stores.archive.archive import new_record_id
from crawlerproject.stores.index.index_files import CdxjFiles, ParquetFiles
from tests.stores.archive.test_archive import files
from tests.warc_samples import exchange, make

CASES = (Path(__file__).parents[2] / "cases" / "columnar_queries.sql").read_text()
QUERIES = {
    name: (json.loads(rows), query)
    for name, rows, query in re.findall(
        r"^-- name: (.+)\n-- rows: (.+)\n((?s:.+?))(?=\n-- name|\Z)", CASES, re.MULTILINE
    )
}
CAPTURES = [
    ("https://example.com/", b"200 OK", b"Content-Type: text/html; charset=utf-8\r\n"),
    ("https://www.example.com/", b"200 OK", b"Content-Type: text/html\r\n"),
    ("https://news.example.com/2018/story.html?page=2", b"200 OK", b"Content-Type: TEXT/HTML\r\n"),
    ("https://news.example.co.uk/report?id=1", b"404 Not Found", b"Content-Type: application/pdf\r\n"),
    ("http://shop.example.co.uk:8080/a", b"404 Not Found", b""),
    ("https://forum.bbc.uk/", b"200 OK", b"Content-Type: text/html\r\n"),
    ("http://192.0.2.7/", b"200 OK", b"Content-Type: text/html\r\n"),
    ("http://example.com/", b"301 Moved", b"Location: https://example.com/\r\n"),
    ("https://www.example.com/robots.txt", b"200 OK", b"Content-Type: text/plain\r\n"),
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """The captures in a WARC, indexed as when it is closed, and a connection as Common Crawl's users make it."""
    folder = tmp_path_factory.mktemp("table")
    index = CdxjFiles(folder / "index", ParquetFiles(folder / "index" / "parquet", "CC-MAIN-2018-05"))
    warc = files(folder / "warc", index=index)
    for url, status, fields in CAPTURES:
        head = b"HTTP/1.1 " + status + b"\r\n" + fields + b"\r\n"
        start = (warc.state() or warc.begin_file()).length
        built = make(exchange(head=head), url, warcinfo_id=warc.warcinfo_id, new_id=new_record_id, start=start)
        position = warc.append(built.members)
        index.append(position.filename, built.line)
    warc.close()
    with connect(folder / "index" / "parquet") as connection:
        yield connection


def connect(parquet: Path) -> duckdb.DuckDBPyConnection:
    """``ccindex.ccindex`` over all parts."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone='UTC'")
    # DuckDB 2.0.0 forgets the subset in sums over a window, also on Parquet that it has written itself.
    connection.execute("SET disabled_optimizers='window_self_join'")
    connection.execute("CREATE SCHEMA ccindex")
    connection.execute(
        "CREATE VIEW ccindex.ccindex AS SELECT * FROM "
        f"read_parquet('{parquet}/crawl=*/subset=*/*.parquet', hive_partitioning=true)"
    )
    return connection


@pytest.mark.parametrize("name", QUERIES)
def test_query(table: duckdb.DuckDBPyConnection, name: str) -> None:
    """The rows that the captures above make."""
    expected, query = QUERIES[name]

    assert [list(row) for row in table.execute(query).fetchall()] == expected

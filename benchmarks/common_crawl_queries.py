"""``python -m benchmarks.common_crawl_queries EXAMPLES TABLE``: Common Crawl's own example queries on our Parquet.

EXAMPLES is ``src/sql/examples/cc-index`` of a clone of github.com/commoncrawl/cc-index-table, TABLE the folder
``index/parquet`` of a crawl. Each query runs as it is published; the crawl that it names is put in place of ours.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import duckdb

_CRAWL = re.compile(r"CC-MAIN-\d{4}-\d{2}")


def connect(table: Path) -> duckdb.DuckDBPyConnection:
    """``ccindex.ccindex`` over all parts, and the list of domains that three of the queries join with, empty."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone='UTC'")
    # DuckDB 2.0.0 forgets the subset in sums over a window, also on Parquet that it has written itself.
    connection.execute("SET disabled_optimizers='window_self_join'")
    connection.execute("CREATE SCHEMA ccindex")
    connection.execute("CREATE TABLE ccindex.alexa_top_1m (rank INT, site VARCHAR, domain VARCHAR)")
    parts = f"{table}/crawl=*/subset=*/*.parquet"
    connection.execute(f"CREATE VIEW ccindex.ccindex AS SELECT * FROM read_parquet('{parts}', hive_partitioning=true)")
    return connection


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.common_crawl_queries", description=__doc__)
    parser.add_argument("examples", type=Path)
    parser.add_argument("table", type=Path)
    given = parser.parse_args()
    connection = connect(given.table)
    crawl = connection.execute("SELECT min(crawl) FROM ccindex.ccindex").fetchall()[0][0]
    ran = 0
    queries = sorted(given.examples.glob("*.sql"))
    for path in queries:
        try:
            rows = len(connection.execute(_CRAWL.sub(crawl, path.read_text())).fetchall())
        except duckdb.Error as error:
            print(f"{path.stem:45} {str(error).splitlines()[0][:110]}")
        else:
            ran += 1
            print(f"{path.stem:45} {rows:,} rows")
    print(f"{ran} of {len(queries)} ran as published")
    sys.exit(0 if ran else 1)


if __name__ == "__main__":
    main()

"""``python -m benchmarks.engines.spark_tasks FOLDER``: the jobs on a processed crawl, and its index in Spark's SQL.

Run by ``benchmarks.engines``. Prints a line of JSON for each: what was asked, rows, whether they are right.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from benchmarks.engines.cc_jobs import JOBS, on_spark
from crawlerproject.batch.spark import session
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.crawl_folders import archives_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORD = re.compile(r"\w+")
# Of the shapes that Common Crawl shows for its own index; both engines know this SQL.
QUERIES = {
    "captures by type": """
        SELECT content_mime_detected, fetch_status, count(*) AS captures, sum(warc_record_length) AS bytes
        FROM ccindex WHERE subset = 'warc' GROUP BY content_mime_detected, fetch_status ORDER BY captures DESC, 1, 2
    """,
    "hosts by captures": """
        SELECT url_host_name, url_host_registered_domain, count(*) AS captures FROM ccindex
        GROUP BY url_host_name, url_host_registered_domain ORDER BY captures DESC, url_host_name
    """,
    "places of records": """
        SELECT url, warc_filename, warc_record_offset, warc_record_length FROM ccindex
        WHERE url_path LIKE '/%e%.html' ORDER BY url, warc_record_offset
    """,
}


def expected(name: str, processed: Path) -> dict[str, int]:
    """What a job must find, by what ``scrapy process`` found."""
    pages, links = (f"read_parquet('{processed / folder}/*.parquet')" for folder in ("pages", "links"))
    with duckdb.connect() as connection:
        if name == "wat_extract_links on WAT":
            return dict(connection.execute(f"SELECT target, count(*) FROM {links} GROUP BY target").fetchall())
        if name == "word_count on WET":
            texts = connection.execute(f"SELECT title, text FROM {pages} WHERE text <> ''").fetchall()
            return dict(Counter(word for text in texts for word in _WORD.findall("\n".join(text).lower())))
        return {"": connection.execute(f"SELECT count(*) FROM {pages}").fetchall()[0][0]}


def files_of(crawl: CrawlDir, suffix: str) -> list[Path]:
    """Those that a job reads."""
    if suffix == ".warc.gz":
        return archives_of(crawl).closed_warcs()
    return sorted(crawl.processed.glob(f"*/*{suffix}"))


def main() -> None:
    """All of them, with one session."""
    crawl = CrawlDir(sys.argv[1])
    with session(sys.argv[2]) as spark:
        for name, job in JOBS.items():
            found = on_spark(spark, name, files_of(crawl, job.suffix))
            wanted = expected(name, crawl.processed)
            right = found == wanted if len(wanted) > 1 else sum(found.values()) == wanted[""]
            print(json.dumps({"asked": name, "rows": len(found), "right": right}))
        for name, (theirs, ours) in index_answers(spark, crawl).items():
            print(json.dumps({"asked": f"index: {name}", "rows": len(theirs), "right": theirs == ours}))


def index_answers(spark: SparkSession, crawl: CrawlDir) -> dict[str, tuple[list[Any], list[Any]]]:
    """Spark's rows and DuckDB's."""
    folders = [str(folder.parquet.absolute()) for folder in archives_of(crawl).folders]
    frames = [spark.read.option("basePath", folder).parquet(folder) for folder in folders]
    table = frames[0]
    for frame in frames[1:]:
        table = table.unionByName(frame)
    table.createOrReplaceTempView("ccindex")
    parts = [f"{folder}/crawl=*/subset=*/*.parquet" for folder in folders]
    with duckdb.connect() as connection:
        connection.execute("SET disabled_optimizers='window_self_join'")
        connection.execute(f"CREATE VIEW ccindex AS SELECT * FROM read_parquet({parts}, hive_partitioning=true)")
        return {
            name: ([tuple(row) for row in spark.sql(query).collect()], connection.execute(query).fetchall())
            for name, query in QUERIES.items()
        }


if __name__ == "__main__":
    main()

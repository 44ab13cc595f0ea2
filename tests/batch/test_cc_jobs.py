"""Jobs of the shape of Common Crawl's on our files, without Spark; ``make bench-engines`` has them on Spark."""

from __future__ import annotations

import pytest

from benchmarks.engines.archive import exchange_of
from benchmarks.engines.cc_jobs import JOBS, pairs_of, summed
from benchmarks.engines.spark_tasks import expected, files_of
from crawlerproject.batch.process_warcs import ExtractOptions, process_warc
from crawlerproject.stores.crawl_dir import CrawlDir
from tests.commands.running import archive_of, write

PAGES = 6


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> CrawlDir:
    """Pages that link to each other, of two kinds of servers, processed."""
    crawl = CrawlDir(tmp_path_factory.mktemp("jobs"))
    made = archive_of(crawl)
    for page in range(PAGES):
        links = "".join(f'<a href="/{other}">to page {other}</a> ' for other in range(page))
        body = f"<title>Page {page}</title><p>Wörter of page {page}, many words.</p>{links}"
        server = ("nginx", "", "Apache")[page % 3]
        write(made, f"http://a.test/{page}", exchange_of(body.encode(), server))
    made.close()
    for warc in crawl.closed_warcs():
        process_warc(warc, crawl.processed, ExtractOptions(wet=True, wat=True))
    return crawl


def found(crawl: CrawlDir, name: str) -> dict[str, int]:
    """What a job makes of the crawl."""
    return summed(pairs_of(name, map(str, files_of(crawl, JOBS[name].suffix))))


@pytest.mark.parametrize("kind", ["WARC", "WAT"])
def test_servers_are_counted(crawl: CrawlDir, kind: str) -> None:
    """Of the answers themselves and of their facts alike."""
    assert found(crawl, f"server_count on {kind}") == {"nginx": 2, "(no server in HTTP header)": 2, "Apache": 2}
    assert expected(f"server_count on {kind}", crawl.processed) == {"": PAGES}


def test_words_are_those_of_the_texts(crawl: CrawlDir) -> None:
    """In WET as in the column of texts."""
    counted = found(crawl, "word_count on WET")

    assert counted == expected("word_count on WET", crawl.processed)
    assert counted["wörter"] == PAGES


def test_links_are_those_of_the_table_of_links(crawl: CrawlDir) -> None:
    """In WAT as in ``processed/links``."""
    counted = found(crawl, "wat_extract_links on WAT")

    assert counted == expected("wat_extract_links on WAT", crawl.processed)
    assert counted["http://a.test/0"] == PAGES - 1

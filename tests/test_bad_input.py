"""What others send us that is broken or hostile: one table of it, each refused with its reason and nothing else lost.

Whole crawls that meet the same: tests/crawls/test_coming_back.py (sitemaps, feeds), tests/crawls/test_pushes.py,
tests/batch/test_steps.py (plans), tests/batch/test_commoncrawl.py (indexes and records).
"""

from __future__ import annotations

import gzip
import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from crawlerproject.batch.commoncrawl_import import Records
from crawlerproject.batch.commoncrawl_index import Distant, Filter, ForeignCapture, read_captures
from crawlerproject.batch.plans import Broken, read_plan
from crawlerproject.errors import OperatorError
from crawlerproject.frontier.learned.subscriptions import Push, Subscriptions
from crawlerproject.parse.links import MAX_FILES, entries_of_sitemap
from crawlerproject.rules.feeds.feeds import MAX_INDEX_DEPTH, MAX_SITEMAP_BYTES, is_feed, read_feed, read_sitemap
from crawlerproject.rules.row_kinds import FLAG_HUB, FLAG_SITEMAP, SEED
from crawlerproject.rules.url.urls import parse
from crawlerproject.stores.protocols import QueuedPage
from tests.frontier.conftest import Bench
from tests.stores.memory_store import MemoryStore

MB = 1024 * 1024
GOOD = "http://a.test/good"
ROBOTS = "http://a.test"  # the origin whose robots.txt names the sitemaps


class Refused(NamedTuple):
    """What became of one bad input."""

    reason: str
    kept: list[str]  # what it held besides, and is used


def row(url: str, hops: str = "M") -> QueuedPage:
    """A sitemap or feed on its way."""
    address = parse(url)
    return QueuedPage(address.host, address.key, url, SEED, 1, 0, hops, "", 0, FLAG_SITEMAP, ROBOTS)


def urlset(*entries: str) -> bytes:
    """A sitemap."""
    return f"<urlset><url><loc>{GOOD}</loc></url>{''.join(entries)}</urlset>".encode()


def listed(body: bytes, hops: str = "M") -> Refused:
    """A sitemap as the crawl reads it."""
    found = entries_of_sitemap(row("http://a.test/map.xml", hops), body)
    return Refused(found.flaw, [each.address.url for each in found.found])


def large_sitemap(_: Path) -> Refused:
    """Beyond the protocol's 50 MB: what stands before the bound counts."""
    return listed(urlset()[:-9] + b" " * MAX_SITEMAP_BYTES + urlset("<url><loc>http://a.test/beyond</loc></url>"))


def gzip_bomb(_: Path) -> Refused:
    """300 KB that are 300 MB."""
    body = gzip.compress(urlset()[:-9] + b" " * (300 * MB), 9)
    assert len(body) < MB
    return listed(body)


def endless_indexes(_: Path) -> Refused:
    """An index within an index within an index: nothing of the third is asked for."""
    index = b"<sitemapindex><sitemap><loc>http://a.test/next.xml</loc></sitemap></sitemapindex>"
    assert listed(index, "M" * MAX_INDEX_DEPTH) == ("", ["http://a.test/next.xml"])
    return listed(index, "M" * (MAX_INDEX_DEPTH + 1))


def too_many_sitemaps(_: Path) -> Refused:
    """An index of more files than anybody has: the first thousand are used."""
    entries = "".join(f"<sitemap><loc>http://a.test/{number}.xml</loc></sitemap>" for number in range(MAX_FILES + 1))
    reason, kept = listed(f"<sitemapindex>{entries}</sitemapindex>".encode())
    assert len(kept) == MAX_FILES
    return Refused(reason, kept[:1])


def entities(_: Path) -> Refused:
    """A billion laughs: none is expanded, and what holds one is no address."""
    laughs = b'<!DOCTYPE u [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;">]>'
    return listed(laughs + urlset("<url><loc>&b;</loc></url>"))


def external_entity(_: Path) -> Refused:
    """A file of this machine as an entity: neither read nor sent."""
    return listed(b'<!DOCTYPE u [<!ENTITY f SYSTEM "file:///etc/passwd">]>' + urlset("<url><loc>&f;</loc></url>"))


def wrong_dates(_: Path) -> Refused:
    """The address counts, the date does not."""
    dates = ("yesterday", "2026-13-45", "0000-00-00", "9" * 5000, "-1", "")
    rows = "".join(f"<url><loc>{GOOD}</loc><lastmod>{date}</lastmod></url>" for date in dates)
    sitemap = read_sitemap(f"<urlset>{rows}</urlset>".encode())
    assert len(sitemap.entries) == len(dates)
    assert not entries_of_sitemap(row("http://a.test/map.xml"), f"<urlset>{rows}</urlset>".encode()).changed
    return Refused(f"dates: {[entry.modified for entry in sitemap.entries if entry.modified]}", [GOOD])


def html_feed(_: Path) -> Refused:
    """HTML that is called a feed is read as the page that it is."""
    body = b"<!DOCTYPE html><html><body>Not found</body></html>"
    assert not is_feed("application/rss+xml", body)
    feed = read_feed(body)
    return Refused(feed.flaw, [entry.url for entry in feed.entries])


def broken_plan(folder: Path) -> Refused:
    """Its lines are reported by number, the others are crawled."""
    lines = [b'{"id": "1", "domain": "a.test", "urls": ["http://a.test/good"]}', b"{not json", b'{"urls": 7}']
    (folder / "plan").write_bytes(b"\n".join(lines))
    read = list(read_plan(folder / "plan"))
    broken = [f"{line.number}: {line.problem}" for line in read if isinstance(line, Broken)]
    return Refused("; ".join(broken), [each.url for line in read if not isinstance(line, Broken) for each in line])


def unknown_columns(folder: Path) -> Refused:
    """A Parquet file that is no index of captures: a sentence that names what is missing."""
    pq.write_table(pa.table({"url": [GOOD], "time": ["20260901"]}), folder / "other.parquet")
    with pytest.raises(OperatorError) as error:
        list(read_captures(str(folder / "other.parquet"), Distant("", "test", 0.0), Filter()))
    return Refused(str(error.value), [])


def index_bomb(folder: Path) -> Refused:
    """An index of 300 MB in 300 KB, without a line: refused within its first lines, of which only one is in memory."""
    (folder / "bomb.cdxj.gz").write_bytes(gzip.compress(b"x" * (300 * MB), 1))
    tracemalloc.start()
    with pytest.raises(OperatorError) as error:
        list(read_captures(str(folder / "bomb.cdxj.gz"), Distant("", "test", 0.0), Filter()))
    assert tracemalloc.get_traced_memory()[1] < 20 * MB
    tracemalloc.stop()
    return Refused(str(error.value), [])


def torn_index(folder: Path) -> Refused:
    """A packed index that breaks off: what stands before is read, then a sentence."""
    fields = f'{{"url": "{GOOD}", "status": "200", "digest": "", "length": "1", "offset": "0", "filename": "f"}}'
    packed = gzip.compress("".join(f"test,a)/good 20260901000000 {fields}\n" for _ in range(5000)).encode())
    (folder / "torn.cdxj.gz").write_bytes(packed[:-100])
    kept = []
    with pytest.raises(OperatorError) as error:
        for capture in read_captures(str(folder / "torn.cdxj.gz"), Distant("", "test", 0.0), Filter()):
            kept.append(capture.address.url)
    assert len(kept) > 1000
    return Refused(str(error.value), kept[:1])


def false_span(folder: Path) -> Refused:
    """An index that points into the middle of a record: it is named; the record that is one is taken."""
    out = io.BytesIO()
    writer, spans = WARCWriter(out, gzip=True), []
    for url in (GOOD, "http://a.test/other"):
        head = StatusAndHeaders("200 OK", [("Content-Length", "4")], protocol="HTTP/1.1")
        start = out.tell()
        writer.write_record(writer.create_warc_record(url, "response", io.BytesIO(b"body"), http_headers=head))
        spans.append((url, start, out.tell() - start))
    (folder / "theirs.warc.gz").write_bytes(out.getvalue())
    captures = [
        ForeignCapture(parse(url), 1e9, 200, b"", "theirs.warc.gz", start + (7 if url != GOOD else 0), length)
        for url, start, length in spans
    ]
    (folder / "warc").mkdir()
    taken, problems = Records(Distant(str(folder), "test", 0.0), folder / "warc", lambda path: None)(captures)
    return Refused("; ".join(problems), [capture.address.url for capture in taken])


def forged_push(_: Path) -> Refused:
    """A push with a bad signature: none of its entries is taken; the subscription stays."""
    store = MemoryStore()
    subscriptions = Subscriptions(store, Bench(store).frontier, "http://127.0.0.1:1/")
    body = b'<feed><link rel="hub" href="http://hub.test/"/><entry><link href="/forged"/></entry></feed>'
    assert subscriptions.feed_read(row("http://a.test/feed", "L"), [], read_feed(body), 1000.0)
    (asked,) = store.head("hub.test", 10)
    assert asked.flags & FLAG_HUB
    token = subscriptions.form(asked).decode().partition("%2F%2F127.0.0.1%3A1%2F")[2].partition("&")[0]
    question = {"hub.mode": "subscribe", "hub.topic": "http://a.test/feed", "hub.challenge": "c"}
    assert subscriptions.verify(token, question | {"hub.lease_seconds": "600"}, 1000.0).body == "c"
    answer, found, changed = subscriptions.push(
        token, Push(body, "application/atom+xml", "sha256=" + "0" * 64, []), 1001.0
    )
    assert (answer.status, changed) == (403, [])
    return Refused(answer.refused, [each.address.url for each in found])


TABLE: list[tuple[Callable[[Path], Refused], str, list[str]]] = [
    (large_sitemap, "larger than 50 MB", [GOOD]),
    (gzip_bomb, "larger than 50 MB once decompressed", [GOOD]),
    (endless_indexes, f"a sitemap index deeper than {MAX_INDEX_DEPTH}", []),
    (too_many_sitemaps, f"more than {MAX_FILES:,} sitemaps", ["http://a.test/0.xml"]),
    (entities, "declares entities, which are not read", [GOOD]),
    (external_entity, "declares entities, which are not read", [GOOD]),
    (wrong_dates, "dates: []", [GOOD]),
    (html_feed, "not a feed but <html>", []),
    (broken_plan, "2: not JSON", [GOOD]),
    (unknown_columns, "is of an unknown schema: it has no column", []),
    (index_bomb, "is of an unknown schema", []),
    (torn_index, "is broken gzip", [GOOD]),
    (false_span, "is not one whole record", [GOOD]),
    (forged_push, "the signature is not the hub's", []),
]


@pytest.mark.parametrize(("bad", "reason", "kept"), [pytest.param(*case, id=case[0].__name__) for case in TABLE])
def test_bad_input(bad: Callable[[Path], Refused], reason: str, kept: list[str], tmp_path: Path) -> None:
    """Refused with its reason; what stands beside it counts; nothing raises but an operator's error."""
    refused = bad(tmp_path)

    assert reason in refused.reason
    assert refused.kept == kept

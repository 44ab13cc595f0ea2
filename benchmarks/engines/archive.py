"""An archive of a real manual in the folders of a fleet: several WARC files a worker."""

from __future__ import annotations

from pathlib import Path

from crawlerproject.rules.archive.http_messages import Wire
from crawlerproject.rules.archive.warc_records import Context
from crawlerproject.stores.archive.archive import Archive, WarcSeries
from crawlerproject.stores.crawl_dir import CrawlDir, write_facts

MANUAL = Path("/usr/share/doc/debian-handbook/html")
WORKERS = 2
_SERVERS = ("nginx", "Apache", "")
_STARTED_AT = 1_790_000_000.0


def manual(pages: int) -> list[Path]:
    """So many of its pages, all languages mixed."""
    return sorted(MANUAL.rglob("*.html"), key=lambda path: (path.name, path.parent))[:pages]


def make(folder: Path, pages: list[Path], warc_bytes: int) -> CrawlDir:
    """A fleet's folder, its WARC files closed and indexed."""
    for worker in range(WORKERS):
        home = CrawlDir(folder / f"worker-{worker + 1}")
        home.mkdir(parents=True)
        write_facts(home.run, {})
        series = WarcSeries("crawl", home.name, warc_bytes, [("software", "crawlerproject"), ("isPartOf", "manual")])
        archive = Archive(home, None, series, keep_days=31, clock=lambda: _STARTED_AT)
        for number, page in enumerate(pages[worker::WORKERS]):
            server = _SERVERS[number % len(_SERVERS)]
            exchange = exchange_of(page.read_bytes(), server)
            url = f"http://{page.parent.name.lower()}.handbook.test/{page.name}"
            archive.write(exchange, Context(url=url, sample=exchange.body))
        archive.close()
    return CrawlDir(folder)


def exchange_of(body: bytes, server: str) -> Wire:
    """A page as a server gives it."""
    named = b"Server: %b\r\n" % server.encode() if server else b""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n%bContent-Length: %d\r\n\r\n" % (named, len(body))
    asked = b"GET / HTTP/1.1\r\n\r\n"
    return Wire(asked, head, body, 200, ip="127.0.0.1", protocols=(), started_at=_STARTED_AT, ended_at=_STARTED_AT)

"""``scrapy export``: processed pages for the search engines of others."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from hashlib import sha1
from pathlib import Path

from crawlerproject.errors import OperatorError
from crawlerproject.operator_command import (
    WORKERS,
    Bytes,
    OperatorCommand,
    alone,
    named_crawl,
    option,
    processed_files,
    still,
    workers_of,
)
from crawlerproject.rules.printable import counted
from crawlerproject.terminal import say


class Command(OperatorCommand):
    """Documents in bulk, as files or sent."""

    arguments = "[FOLDER] [--format opensearch|quickwit] [--out DIR] [--to URL] [--workers N]"
    summary = "Export processed pages for OpenSearch or Quickwit"
    details = (
        "Turn processed/pages of a crawl folder (default: CRAWL_DIR) into bodies of bulk requests and the index's "
        "mappings, in processed/export/FORMAT. --to http://host:9200/INDEX makes the index and sends what is not "
        "there yet. Run again, it goes on. Exit status 1 when documents were refused. Example: scrapy export "
        "crawls/web --to http://localhost:9200/pages"
    )

    options = (
        option("--format", choices=("opensearch", "quickwit"), default="opensearch"),
        option("--out", type=Path, help="where the format's folder goes (default: processed/export)"),
        option("--to", default="", help="an index of OpenSearch, with user:password@ if it wants them"),
        WORKERS,
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Export, send if asked to, and say how much."""
        # Scrapy imports every command at each start: what is heavy waits until it is asked for.
        from crawlerproject.batch.bulk_export import FORMATS, OPENSEARCH, export
        from crawlerproject.batch.process_warcs import PAGES

        if opts.to and opts.format != OPENSEARCH:
            raise OperatorError("--to speaks OpenSearch's bulk interface; Quickwit takes the files (docs/engines.md).")
        folder = named_crawl(args, self.settings)
        pages, files = processed_files(folder, PAGES, "There is nothing to export")
        out, form = (opts.out or folder.exports) / opts.format, FORMATS[opts.format]
        with still([folder]), alone(out, "export"), Bytes("Exporting", files) as progress:
            exported = export(pages, out, opts.format, progress.advance, workers_of(opts))
        say(f"{counted(exported, 'page')} exported into {out}")
        if opts.to:
            self.exitcode = _send(out, (out / form.index_file).read_bytes(), opts.to, time.sleep)


def _send(out: Path, index: bytes, url: str, wait: Callable[[float], None]) -> int:
    """Say what became of it; 1 when documents were refused."""
    from crawlerproject.batch.bulk_export import BulkSender, bodies

    sender = BulkSender(url, wait)
    waiting = bodies(out)
    journal = out / f"sent-{sha1(sender.target.encode()).hexdigest()[:16]}.txt"  # of each index its own
    try:
        sender.make_index(index)
        with Bytes("Sending", waiting) as progress:
            sender.send_all(waiting, journal, progress.advance)
    finally:
        sender.close()
        sent = sender.sent
        say(f"{counted(sent.taken, 'page')} sent, {sent.older:,} were there in a later capture")
        for kind, count in sent.refused.items():
            say(f"{count:,} were refused ({kind}), the first since {sent.first[kind]}", error=True)
    return 1 if sent.refused else 0

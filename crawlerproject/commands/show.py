"""``scrapy show``: a capture's headers and body as they are stored."""

from __future__ import annotations

import argparse
import sys

from crawlerproject.errors import OperatorError
from crawlerproject.fetch.decoding import decode
from crawlerproject.operator_command import OperatorCommand, named_archives, one_argument, option
from crawlerproject.rules.archive.http_messages import content_encoding
from crawlerproject.stores.archive.capture_index import Captures, nearest
from crawlerproject.terminal import say

# What a capture may become when it is unpacked; the largest body that is fetched by default is 5 MiB.
_MAX_BODY_BYTES = 1 << 30


class Command(OperatorCommand):
    """Reads one record, also of the file that a running crawl still writes."""

    arguments = "URL [--time T] [--raw]"
    summary = "Print the stored headers and body of a URL"
    details = (
        "Print the stored headers and body of a URL's latest capture, or of the one nearest to a time. --raw leaves a"
        " body compressed or in chunks, as it is stored. Example: scrapy show https://example.org/ --time 2026-11-21 "
        "-s CRAWL_DIR=crawls/web"
    )

    options = (
        option("--time", metavar="T", help="the capture nearest to this UTC time: 2026, 20261121, ..."),
        option("--raw", action="store_true", help="leave the Content-Encoding on the body"),
    )

    def answer(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print bytes."""
        url = one_argument(args, "one URL", "scrapy show https://example.org/")
        archives = named_archives([], self.settings)
        captures = Captures(archives.folders, archives.elsewhere)
        found = captures.of_url(url)
        if not found:
            say(f"There is no capture of {url}.", error=True)
            self.exitcode = 1
            return
        member = captures.record(nearest(found, opts.time) if opts.time else found[-1])
        holder = member  # of the body
        if member.kind == "revisit":
            original = captures.original(member)
            if original is None:
                raise OperatorError(f"{url} was not new, and the capture that has its body is not in this archive.")
            say(f"The body is that of {original.row.url} at {original.row.timestamp}.", error=True)
            holder = captures.record(original)
        if holder.is_large:
            say(f"Only the beginning of the body is shown: it is in {found[-1].filename}.", error=True)
        body = holder.payload
        if not opts.raw:
            decoded = decode(holder.body, content_encoding(holder.head), _MAX_BODY_BYTES)
            if decoded.flag:
                say(f"The body is not what its Content-Encoding says ({decoded.flag}).", error=True)
            body = decoded.body
        sys.stdout.buffer.write(member.head + body)
        sys.stdout.buffer.flush()

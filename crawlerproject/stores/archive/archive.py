"""What a crawl leaves behind, kept in step: WARC files, their index, the request log."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha1
from typing import NamedTuple

from crawlerproject.rules.archive.http_messages import Wire, digest_text, payload_digest
from crawlerproject.rules.archive.index_rows import row_of_capture
from crawlerproject.rules.archive.warc_records import (
    Context,
    Original,
    Payload,
    Render,
    capture,
    render_members,
    warc_date,
    withheld,
)
from crawlerproject.stores.archive.recovery import RowsLost, recover
from crawlerproject.stores.archive.warc_writer import OpenFile, Position, WarcFiles, WarcSeries, new_record_id
from crawlerproject.stores.crawl_dir import CrawlDir
from crawlerproject.stores.index.index_files import CdxjFiles, ParquetFiles
from crawlerproject.stores.logs.request_log import RequestLog
from crawlerproject.stores.operator_files.watched_lists import RELOAD_SECONDS, WithdrawnFile
from crawlerproject.stores.poison import NO_MARK, Waiting


class Written(NamedTuple):
    """Where a capture went, and the payload's digest (sha1, 20 bytes)."""

    filename: str
    offset: int  # of the response record
    length: int  # of the response record
    digest: bytes
    record_id: str  # of the response record
    date: str  # its WARC-Date

    @property
    def digest_text(self) -> str:
        """As Common Crawl's index writes it: base32 without a label."""
        return digest_text(self.digest)


def parquet_of(folder: CrawlDir) -> ParquetFiles:
    """The Parquet index of a crawl folder."""
    return ParquetFiles(folder.parquet, folder.resolve().name)


class Archive:
    """Appends captures and log lines; ``flush`` and ``sync`` come before each commit of the frontier."""

    def __init__(
        self,
        folder: CrawlDir,
        committed: OpenFile | None,
        series: WarcSeries,
        *,
        keep_days: int,
        clock: Callable[[], float],
        lost: RowsLost | None = None,
        waiting: Waiting = NO_MARK,
    ) -> None:
        """``waiting`` is entered whenever a capture's bytes are ready and the disk is waited for."""
        self._withdrawn, self._clock, self._waiting = WithdrawnFile(folder, RELOAD_SECONDS), clock, waiting
        self._index = CdxjFiles(folder.index, parquet_of(folder))
        recovery = recover(folder.warc, committed, self._index, lost)
        self.messages = [*recovery.messages, *self._index.catch_up(folder.warc)]
        self.warc = WarcFiles(folder.warc, series, clock, index=self._index, resume=recovery.open_file)
        self.log = RequestLog(folder.log, keep_days)

    def write(
        self, wire: Wire, context: Context, digest: bytes | None = None, original: Original | None = None
    ) -> Written:
        """Append one capture whole, a revisit when there is an ``original``; ``digest`` is the body's, if known.

        StorageError when there is no room, and nothing has changed then.
        """
        payload = Payload(digest or payload_digest(wire.body), original)
        built = capture(wire, context, payload, warcinfo_id=self.warc.warcinfo_id, new_id=new_record_id)
        position = self._append(built.members)
        info = built.info
        self._index.append(position.filename, row_of_capture(info, position.offset))
        offset = position.offset + info.offset
        return Written(position.filename, offset, info.length, info.payload_digest, info.record_id, info.date)

    def withdrawn(self, url: str) -> bool:
        """Whether the captures of a URL were asked back."""
        return self._withdrawn.current(self._clock()).covers(url)

    def write_withheld(self, wire: Wire, context: Context) -> None:
        """Append the metadata of an answer of which nothing else is kept. StorageError, as ``write``."""
        self._append(withheld(wire, context, warcinfo_id=self.warc.warcinfo_id, record_id=new_record_id()))

    def write_render(self, render: Render) -> Written:
        """Append what a browser made of a page; StorageError when there is no room, and nothing has changed then."""
        built = render_members(render, warcinfo_id=self.warc.warcinfo_id, new_id=new_record_id)
        position = self._append(built.members)
        digest = sha1(render.html, usedforsecurity=False).digest()
        date = warc_date(render.ended_at)
        return Written(position.filename, position.offset, built.length, digest, built.record_id, date)

    def _append(self, members: bytes) -> Position:
        with self._waiting:
            return self.warc.append(members)

    def flush(self) -> None:
        """Hand everything buffered to the operating system: it survives the death of the process."""
        self.warc.keep()
        self._index.flush()
        self.log.flush()

    def sync(self) -> None:
        """Make the appended captures survive a power loss; may run in a thread."""
        self.warc.sync()

    def close(self) -> None:
        """Close the open file under its final name, with its index. Commit before."""
        self.flush()
        self.warc.close()
        self._index.close()
        self.log.close()

    def abandon(self) -> None:
        """Let go of everything as it is: the next start recovers it."""
        self.warc.abandon()

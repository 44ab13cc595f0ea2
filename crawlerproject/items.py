"""What a spider hands to the pipelines: exactly one Page for every lease, whatever became of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from crawlerproject.fetch.wire import Wire
from crawlerproject.frontier.lease import Lease
from crawlerproject.reasons import Reason


@dataclass(slots=True)
class Page:
    """One attempt at a URL and its outcome."""

    lease: Lease
    url: str
    reason: Reason
    wire: Wire | None = None  # None when nothing was connected
    mime: str = ""  # Content-Type without parameters, as the server said it
    location: str = ""  # of a redirect, as an absolute URL
    retry_after: str = ""  # header, as received
    etag: str = ""
    last_modified: str = ""
    body: bytes = b""  # content-decoded
    error: str = ""  # one line for humans
    notes: list[tuple[str, str]] = field(default_factory=list)  # further lines of the metadata record

    @property
    def status(self) -> int | None:
        """HTTP status; None when no answer could be read."""
        return self.wire.status or None if self.wire else None

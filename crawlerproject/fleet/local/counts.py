"""What a local fleet's worker has done, as its reports say it and its supervisor sums it up."""

from __future__ import annotations

from typing import NamedTuple


class Counts(NamedTuple):
    """Of one process since it began, and what it has left."""

    pages: int = 0
    bytes: int = 0
    errors: int = 0
    queued_urls: int | None = None  # None: it has not said yet
    paused: str = ""  # why it asks nothing

    def after(self, before: Counts) -> Counts:
        """Over two processes of one worker, one after the other."""
        done = (self.pages + before.pages, self.bytes + before.bytes, self.errors + before.errors)
        queued_urls = before.queued_urls if self.queued_urls is None else self.queued_urls
        return Counts(*done, queued_urls, self.paused)

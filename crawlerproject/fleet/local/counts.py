"""What a local fleet's worker has done, as its reports say it and its supervisor sums it up."""

from __future__ import annotations

from typing import NamedTuple


class Counts(NamedTuple):
    """Of one process since it began, and what it has left."""

    pages: int = 0
    bytes: int = 0
    errors: int = 0
    queued_urls: int = 0
    paused: str = ""  # why it asks nothing

    def after(self, before: Counts) -> Counts:
        """Over two processes of one worker, one after the other."""
        done = (self.pages + before.pages, self.bytes + before.bytes, self.errors + before.errors)
        return Counts(*done, self.queued_urls or before.queued_urls, self.paused)

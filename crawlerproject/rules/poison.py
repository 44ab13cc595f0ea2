"""Decides which pages are read no more: those that were being read when the process died, twice."""

from __future__ import annotations

from typing import NamedTuple

# One end may be anything: the machine, the operator's kill -9, another program's memory. A second one over the same
# page, which in between was not read to its end, is the page.
POISON_ENDS = 2


class Suspect(NamedTuple):
    """A page over which the process died."""

    url: str
    ends: int  # of processes, while it was being read
    last_at: float  # epoch seconds, when the last of them was found

    @property
    def poison(self) -> bool:
        """Whether it is set aside."""
        return self.ends >= POISON_ENDS


def after_unclean_end(before: Suspect | None, url: str, now: float) -> Suspect:
    """What is held against a page that was being read when the last process died."""
    return Suspect(url, before.ends + 1 if before is not None else 1, now)

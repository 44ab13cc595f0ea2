"""What is learned from pages as they end, and how all of it reaches the store.

A learner keeps what it has learned until a commit has stored it: ``facts`` go with the next commit, ``stored`` says
that they have arrived. Facts of a commit that failed are among the next ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.reasons import Reason
from crawlerproject.stores.protocols import QueuedPage

Facts = list[tuple[str, bytes]]


class Visit(NamedTuple):
    """One fetch or render of a page that has ended, as far as anything is learned from it."""

    row: QueuedPage
    reason: Reason
    status: int | None = None  # HTTP; None without an answer, and of a render
    digest: bytes = b""  # of the payload
    error: str = ""
    location: str = ""  # of a redirect, absolute
    etag: str = ""
    last_modified: str = ""
    freshness: Mapping[str, str] = {}  # headers that say how long it stays fresh, names in lower case
    marks: tuple[int, ...] = ()  # of its text, rules/traps/text_marks.py
    fingerprint: int | None = None  # SimHash of the text
    repeats: Duplicate | None = None
    is_feed: bool = False
    shell: bool = False  # it goes back for the browser: its text says nothing yet
    cut: bool = False  # broken off, since it was too slow
    named: bool = False  # it names other URLs
    new_links: int = 0  # of these, those that were queued
    respelled: bool = False  # it goes back for where it was redirected to, which is the same page by its key
    plain: tuple[int, int] = (0, 0)  # words and links without the browser
    rendered: tuple[int, int] | None = None  # with it; None: nothing was gained or lost that is typical of the page


class Kept(Protocol):
    """Facts of hosts on their way into the store."""

    def facts(self) -> Facts:
        """What the next commit stores."""

    def stored(self) -> None:
        """The last ``facts`` have reached the store."""

    def unstored(self) -> set[str]:
        """The hosts (or domains) of which something is not in the store yet."""

    def forget(self, mine: Callable[[str], bool]) -> None:
        """Drop what is in memory of hosts that other workers decide about now."""


class Learner(Kept, Protocol):
    """Learns of hosts from visits to their pages."""

    def learn(self, visit: Visit, now: float) -> object:
        """Take in a visit that ended ``now`` (epoch seconds); the result is the learner's own word on it."""

"""One visit to a page, as far as anything is learned from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from crawlerproject.frontier.learned.duplicates import Duplicate
from crawlerproject.reasons import Reason
from crawlerproject.stores.protocols import QueuedPage


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

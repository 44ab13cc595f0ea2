"""Every setting of ours in one table: its default, what it may be, its earlier names, and whether it shapes the crawl.

From here come the defaults (``settings.py``), the checks before a start (``crawl/start/setting_limits.py``), what a
crawl remembers of them (``crawl_file.py``), the names of earlier versions (``old_settings.py``), and the line of facts
below each heading of docs/settings.md (``scripts/settings_doc.py``). What a setting is for stands in that page.
"""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from crawlerproject.rules.consent.verdict import PURPOSES
from crawlerproject.rules.url.refused_urls import SKIP_EXTENSIONS

LARGEST = 1e10
"""Some 300 years, where they are seconds: beyond that clocks and timers do not add up any more."""
_MOST_WHOLE = 2**53  # what JSON, and so run.json, still holds exactly (RFC 8259 6)
_LARGEST_PORT = 65_535
_LONGEST_DAYS = 36_500  # a hundred years; dates end in 9999
_REDIS_SLOTS = 16_384
_WARC_MAX_BYTES = 2_000_000_000  # Common Crawl's columns hold offsets in 32 bits; a file may exceed this by one capture


class Kind(StrEnum):
    """What a value may be."""

    SWITCH = "True or False"
    WHOLE = "a whole number"
    NUMBER = "a number"
    PRESET = "a number; None: the preset's"
    TEXT = "text"
    LIST = "a list"
    FILE = "a file"  # one that is named must be there
    ADDRESS = "an IP address of this machine"


class Setting(NamedTuple):
    """One row of the table."""

    kind: Kind
    default: Any = ""
    least: float = 0
    most: float = _MOST_WHOLE
    above_least: bool = False  # ``least`` itself is too little
    words: tuple[str, ...] = ()  # the only texts that it may be
    # It decides which pages a crawl has, or what is kept of them: changing it makes it another crawl. All others (pace,
    # limits of memory, ports) only change how it is done.
    decisive: bool = False
    of_process: bool = False  # says where a process runs, not what the crawl is: no crawl remembers it
    earlier: tuple[str, ...] = ()  # names that it had, which go on working


_switch, _whole, _number, _text, _file, _list = (
    partial(Setting, kind) for kind in (Kind.SWITCH, Kind.WHOLE, Kind.NUMBER, Kind.TEXT, Kind.FILE, Kind.LIST)
)
_seconds = partial(_number, most=LARGEST)


def _word(*words: str, decisive: bool = False) -> Setting:
    """The first is the default."""
    return Setting(Kind.TEXT, words[0], words=words, decisive=decisive)


_OF_PRESET = Setting(Kind.PRESET, None, most=LARGEST)
_LOOPBACK = Setting(Kind.ADDRESS, "127.0.0.1")

SETTINGS: dict[str, Setting] = {
    # Identity. A crawl of public addresses does not start without a way to reach the operator.
    "CRAWLER_NAME": _text("PoliteCrawler", decisive=True),  # the group of robots.txt that is obeyed
    "CRAWLER_INFO_URL": _text(),
    "CRAWLER_CONTACT": _text(),
    # What the pages are for, and whether a site's words on that are recorded or obeyed; "auto": by the purpose.
    "PURPOSE": _word(*PURPOSES, decisive=True),
    "CONSENT": _word("auto", "record", "ask", "obey", decisive=True),
    "CRAWLER_AGENT_SHAPE": _word("short", "compatible"),
    "IDENTITY_RANGES": _list([]),
    # Signed requests; the file, read at the start, is made by `scrapy identity init`.
    "IDENTITY_KEY_FILE": _text(),
    "IDENTITY_COVERS": _word("authority", "path"),
    "IDENTITY_EXCEPT": _list([]),
    "CRAWL_DIR": _text(of_process=True),
    # Pace.
    "PACE_PRESET": _text("default"),
    "PACE_MULTIPLIER": _OF_PRESET,
    "PACE_MIN_SECONDS": _OF_PRESET,
    "PACE_MAX_SECONDS": _OF_PRESET,
    "PACE_START_SECONDS": _OF_PRESET,
    "HOST_PACE_FILE": _file(),
    "QUIET_HOURS": _switch(True),
    "PACE_PER_IP": _switch(True),
    "PACE_IP_SECONDS": _seconds(0.5),
    "RETRY_AFTER_MAX_SECONDS": _seconds(86400),
    "BACKOFF_START_SECONDS": _seconds(60),
    "BACKOFF_MAX_SECONDS": _seconds(86400),
    "HOST_MAX_FAILURES": _whole(5, 1),
    # Exclusions and bounds.
    "NEVERCRAWL_FILE": _file("NeverCrawl.txt", decisive=True),
    "NEVERCRAWL_USER_FILE": _file("~/.config/polite-crawler/NeverCrawl.txt", decisive=True),
    "TRAP_ALLOW_FILE": _file(decisive=True),
    "SKIP_EXTENSIONS": _list(sorted(SKIP_EXTENSIONS), decisive=True),
    "ROBOTS_TTL_SECONDS": _seconds(86400),
    "SCOPE_MAX_DEPTH": _whole(20, decisive=True),
    "SCOPE_MAX_URLS_PER_HOST": _whole(100_000, decisive=True),
    "SCOPE_MAX_URL_LENGTH": _whole(2000, 1, decisive=True),
    "SCOPE_MAX_HOSTS_PER_DOMAIN": _whole(1000, 1, decisive=True),
    # What pages need to be seen: style sheets, images, fonts, scripts.
    "REQUISITES": _word("none", "page", "same-domain", decisive=True),
    "REQUISITES_MAX_PER_PAGE": _whole(500, 1, decisive=True),
    # Links within PDFs and the like.
    "DOCUMENT_LINKS": _switch(False, decisive=True),
    # Fetching.
    "FETCH_MAX_BYTES": _whole(5 * 1024 * 1024, 1, decisive=True),
    "FETCH_TIMEOUT_SECONDS": _seconds(30, above_least=True),
    "FETCH_ALLOW_NETWORKS": _list([], decisive=True),
    "FETCH_CONNECT_TIMEOUT_SECONDS": _seconds(10, above_least=True),
    "FETCH_FIRST_BYTE_TIMEOUT_SECONDS": _seconds(20, above_least=True),
    "FETCH_HOSTS_FILE": _file("/etc/hosts"),
    "FETCH_DNS_SERVERS": _list([]),
    "FETCH_DNS_MAX_PER_SECOND": _number(500, above_least=True),
    "FETCH_CA_FILE": _text(),  # read as PEM at the start
    "TLS_ALLOW_HOSTS": _list([], decisive=True),
    "NATIVE_READER": _word("auto", "never"),
    # Pages that need a browser.
    "RENDER": _word("auto", "never", "always", decisive=True),
    "RENDER_BROWSER": _text(),
    "RENDER_SANDBOX": _word("auto", "required"),
    "RENDER_MAX_IN_FLIGHT": _whole(2),
    "RENDER_TIMEOUT_SECONDS": _seconds(30),
    "RENDER_SCREENSHOT": _switch(False),
    "RENDER_PROXIES": _list([]),
    # Coming back.
    "RECRAWL_RECENT_DAYS": _number(2, 0, _LONGEST_DAYS),
    "SITEMAPS": _switch(True, decisive=True),
    # Where WebSub hubs push to; 0: no subscriptions.
    "WEBSUB_PORT": _whole(0, 0, _LARGEST_PORT),
    "WEBSUB_ADDRESS": _LOOPBACK,
    "WEBSUB_PUBLIC_URL": _text(),
    # Archive and frontier.
    "WARC_MAX_BYTES": _whole(1_000_000_000, 1, _WARC_MAX_BYTES),
    "WARC_PREFIX": _text("crawl"),
    "WARC_OPERATOR": _text(),
    # What the report, the first page of a replay and a WACZ are headed with.
    "CRAWL_TITLE": _text(),
    "CRAWL_DESCRIPTION": _text(),
    "COMMIT_SECONDS": _seconds(1.0, above_least=True),
    "STATE_URL": _text("rocksdb:", of_process=True),
    # Several workers on one crawl: STATE_URL is redis://…
    "FLEET_CRAWL": _text("web", of_process=True),
    "FLEET_WORKER": _text(of_process=True),
    "FLEET_RUN": _text(of_process=True),
    "FLEET_PARTITIONS": _whole(256, 1, _REDIS_SLOTS),
    "FLEET_LEASE_SECONDS": _seconds(60, above_least=True),
    "FRONTIER_MAX_IN_FLIGHT": _whole(1000, 1),
    "FRONTIER_MAX_REST_SECONDS": _seconds(3600, earlier=("FRONTIER_PATIENCE_SECONDS",)),
    "DISK_MIN_FREE_BYTES": _whole(200_000_000),
    "LOG_KEEP_DAYS": _whole(31, 1, _LONGEST_DAYS),  # today is one of them
    "LOG_LINES": _word("text", "json"),
    "PROGRESS_LOG_SECONDS": _seconds(30),
    "OWN_ERRORS_MAX_IN_A_ROW": _whole(20, earlier=("ERRORS_IN_A_ROW",)),
    # The live page; 0: none.
    "WATCH_PORT": _whole(0, 0, _LARGEST_PORT),
    "WATCH_ADDRESS": _LOOPBACK,
    # Where the archive goes; empty: it stays in the crawl's folder.
    "ARCHIVE_URL": _text(),
    "ARCHIVE_KEEP_LOCAL": _switch(True),
    "ARCHIVE_READ_BACK": _switch(False),
    "ARCHIVE_MAX_BYTES_PER_SECOND": _number(0),
    # pywb's program for `scrapy replay`; empty: it is looked for.
    "REPLAY_COMMAND": _text(),
    # What is called when the crawl pauses, errs, falls silent or ends; empty: nothing.
    "HOOK_COMMAND": _text(),
    "HOOK_URL": _text(),
}

FORMER: dict[str, Setting] = {
    "ARCHIVE_END_WAIT_SECONDS": _seconds(None),
    "FETCH_DNS_TIMEOUT_SECONDS": _seconds(None),
    "FETCH_MIN_BYTES_PER_SECOND": _number(None),
    "FETCH_SLOW_GRACE_SECONDS": _seconds(None),
    "FLEET_MAX_DRIFT_SECONDS": _seconds(None, above_least=True),
    "FRONTIER_MAX_HOSTS_IN_MEMORY": _whole(None, 1),
    "HOOK_SILENT_SECONDS": _seconds(None),
    "HOOK_TIMEOUT_SECONDS": _seconds(None, above_least=True),
    "NEAR_DUPLICATE_BITS": _whole(None, 0, 64),  # a fingerprint has no more
    "NEAR_DUPLICATE_MAX_PAGES": _whole(None),
    "NETWORK_MAX_WAIT_SECONDS": _seconds(None),
    "NEVERCRAWL_RELOAD_SECONDS": _seconds(None),
    "PACE_WINDOW": _OF_PRESET,
    "READ_MAX_MEMORY_BYTES": _whole(None, 1),
    "READ_TIMEOUT_SECONDS": _seconds(None, above_least=True),
    "RECRAWL_FULL_FETCH_SHARE": _number(None, 0, 1, earlier=("RECRAWL_CHECK_SHARE",)),
    "RENDER_MAX_MEMORY_BYTES": _whole(None),
    "RENDER_MAX_PER_HOST": _whole(None),
    "RENDER_MAX_SUBREQUESTS": _whole(None),
    "RENDER_NAVIGATION_SECONDS": _seconds(None),
    "RENDER_PAGE_MEMORY_BYTES": _whole(None),
    "RENDER_WAIT_SECONDS": _seconds(None),
    "REQUISITES_MAX_PER_HOST": _whole(None),
    "REQUISITES_PRIORITY": Setting(Kind.TEXT, None, words=("among", "after")),
    "SCOPE_MAX_PORTS_PER_HOST": _whole(None),
}
"""Settings of versions up to 1.7.0 that are constants now, beside the code that uses them: one that is given holds all
the same, and the start logs that it is no longer a setting."""

WITHOUT_EFFECT = {
    "FETCH_DNS_NEGATIVE_TTL_SECONDS": 60,
    "FETCH_KEEPALIVE_SECONDS": 8,
    "FETCH_MAX_IDLE_CONNECTIONS": 2000,
    "NEAR_DUPLICATE_BITS_ACROSS_HOSTS": 3,
    "RENDER_CACHE_BYTES": 64 * 1024**2,
    "RENDER_MAX_PAGES": 100_000,
    "RENDER_RECYCLE_PAGES": 200,
}
"""Settings of still earlier versions, with the value that always holds."""

ALL = SETTINGS | FORMER
RENAMED = {old: name for name, setting in ALL.items() for old in setting.earlier}
"""Earlier name: today's."""

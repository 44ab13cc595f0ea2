"""Decides from a URL alone whether it is never requested: by its extension, its port, or the shape of its path.

A crawler for text wants no pictures or archives; some ports speak other protocols; a path that nests endlessly, repeats
itself or has a host name as a folder is a trap.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from crawlerproject.rules.url.urls import host_name

# Mischel ("Writing a web crawler: politeness"): his list of extensions that a crawler for text does not want, word for
# word and in his order.
MISCHEL = (
    "asx bmp css doc docx flv gif jpeg jpg mid mov mp3 ogg pdf png ppt ra ram rm swf wav wma wmv zip m4a m4v mp4 m4b"
)
# What of his list the crawler derives something from, and what that is.
DERIVED = {"pdf": "scrapy process reads its text, title and links"}

SKIP_EXTENSIONS = frozenset(MISCHEL.split()) - DERIVED.keys()  # lower-case, without the dot

# How sitemaps are packed (sitemaps.org): of a sitemap no reason to leave it.
_PACKED_SITEMAPS = frozenset({"gz"})


# Fetch standard (WHATWG), "port blocking", as of 2026: services whose protocols a request of HTTP can be mistaken for.
_FETCH_STANDARD = frozenset(
    {0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109}
    | {110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530}
    | {531, 532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190}
    | {5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
)
# Ours: these read line by line and skip what they do not understand, so that a path can hold a command.
_LINE_BY_LINE = frozenset({6379, 11211})  # Redis, memcached

BAD_PORTS = _FETCH_STANDARD | _LINE_BY_LINE

DEFAULT_MAX_PORTS = 8
"""Other ports of one name that links may add: 8080, 8443, 8000 and what else a machine really shows; ours."""

# Heritrix's TooManyPathSegmentsDecideRule: 20.
MAX_SEGMENTS = 20
# Zeno's path loop rule: a segment that occurs more than three times.
MAX_SAME_SEGMENT = 3
# Zeno again: ten deep or more, with two different segments three times each.
_DEEP_SEGMENTS = 10
# Heritrix's PathologicalPathDecideRule: /x/x/x/ , one sequence of segments three times in a row.
_IN_A_ROW = re.compile(r"((?:/[^/]+){1,5}?)\1\1(?=/|$)")
# Fewer slashes than this cannot repeat anything three times.
_MIN_SLASHES = 3


def url_path(url: str) -> str:
    """Path of an absolute URL, without its first slash; no query."""
    return url.partition("://")[2].partition("?")[0].partition("/")[2]


def useless(path: str, extensions: Collection[str] = SKIP_EXTENSIONS) -> bool:
    """Whether the last segment of a URL's path (no query) ends in one of ``extensions`` (lower-case, no dot)."""
    name = path[path.rfind("/") + 1 :].partition(";")[0]
    dot = name.rfind(".")
    return dot >= 0 and name[dot + 1 :].lower() in extensions


def extensions_of(listed: Collection[str]) -> frozenset[str]:
    """An operator's list as ``useless`` wants it: ".PNG" and "png" are the same."""
    return frozenset(word.strip().lower().lstrip(".") for word in listed if word.strip(" ."))


def of_sitemaps(extensions: Collection[str]) -> frozenset[str]:
    """What of a list is useless as a sitemap too."""
    return frozenset(extensions) - _PACKED_SITEMAPS


def bad_port(host: str) -> bool:
    """Whether a host key names a port at which no web server is to be looked for."""
    if ":" not in host:
        return False
    name = host_name(host)
    return len(name) < len(host) and int(host[len(name) + 1 :]) in BAD_PORTS


def trap(path: str, host_name: str = "") -> bool:
    """Whether a URL's path (no query) looks endless. With ``host_name``, the host's own name as a folder counts
    too: the mark of links that lost their "http://" (browsertrix-crawler issue 931).
    """
    if "." in path and host_name and host_name in path and "." in host_name and host_name in path.split("/"):
        return True
    slashes = path.count("/")
    if slashes < _MIN_SLASHES or slashes > MAX_SEGMENTS:
        return slashes > MAX_SEGMENTS
    segments = [segment for segment in path.split("/") if segment]
    extra = len(segments) - len(set(segments))
    if extra < 1:
        return False
    counts: dict[str, int] = {}
    for segment in segments:
        counts[segment] = counts.get(segment, 0) + 1
    if max(counts.values()) > MAX_SAME_SEGMENT:
        return True
    if len(segments) >= _DEEP_SEGMENTS and sum(count >= MAX_SAME_SEGMENT for count in counts.values()) > 1:
        return True
    if any(count > 1 and segment.startswith("www.") for segment, count in counts.items()):
        return True  # a host name as a folder, twice: a link without its "http://" that found itself
    return extra > 1 and _IN_A_ROW.search(path) is not None

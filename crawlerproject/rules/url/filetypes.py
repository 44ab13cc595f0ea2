"""Decides by its extension whether a file is worth fetching: a crawler for text wants no pictures or archives."""

from __future__ import annotations

from collections.abc import Collection

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

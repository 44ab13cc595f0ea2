"""Decides by a path's shape alone whether it is a trap: endless nesting, repetition, a host name used as a folder."""

from __future__ import annotations

import re

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


def trap(path: str, host_name: str = "") -> bool:
    """Whether a URL's path (no query) looks endless. With ``host_name``, the host's own name as a folder counts
    too: the mark of links that lost their "http://" (browsertrix-crawler issue 931).
    """
    slashes = path.count("/")
    if host_name and host_name in path and _has_folder(path, host_name):
        return True
    if slashes < _MIN_SLASHES:
        return False
    if slashes > MAX_SEGMENTS:
        return True
    return _repeats(path)


def _repeats(path: str) -> bool:
    """Whether segments of the path repeat themselves beyond reason."""
    segments = [segment for segment in path.split("/") if segment]
    distinct = len(set(segments))
    extra = len(segments) - distinct
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


def _has_folder(path: str, name: str) -> bool:
    """Whether one whole segment of the path is the dotted name."""
    return "." in name and name in path.split("/")

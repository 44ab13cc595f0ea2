"""Which pages links reach, found by reading the files with another parser than the crawler's."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote, urldefrag, urlsplit

import ada_url
from lxml import html

from benchmarks.real_pages.site import RealSite

_LINKED = frozenset(("next", "canonical", "alternate"))  # <link> elements that lead to pages
_PAGES = (".html", "/")  # everything else (images, sources) may be refused for its extension


class Reached(NamedTuple):
    """What a walk from the seeds found."""

    pages: set[str]  # files that are there
    dead: set[str]  # links to files that are not: answered with 404
    others: set[str]  # no pages by their extension


def walk(site: RealSite) -> Reached:
    """Follow every link of every page, within the site's hosts."""
    reached = Reached(set(), set(), set())
    known: set[str] = set()
    waiting = deque(site.seeds)
    while waiting:
        url = waiting.popleft()
        parts = urlsplit(url)
        if url in known or parts.hostname not in site.hosts or parts.port != site.port or parts.scheme != "http":
            continue
        known.add(url)
        if not parts.path.endswith(_PAGES):
            reached.others.add(url)
            continue
        path = site.root / parts.hostname / unquote(parts.path.lstrip("/"))
        if not path.is_file():
            reached.dead.add(url)
            continue
        reached.pages.add(url)
        waiting.extend(_links(path.read_bytes(), url))
    return reached


def _links(page: bytes, url: str) -> Iterator[str]:
    tree = html.document_fromstring(page, parser=html.HTMLParser(encoding="utf-8"))
    for href in _targets(tree):
        try:
            yield urldefrag(ada_url.join_url(url, href)).url  # urllib's drops the empty segments of a//b
        except ValueError:
            continue


def _targets(tree: html.HtmlElement) -> Iterable[str]:
    for element in tree.iter("a", "area", "link", "iframe", "frame"):
        target = element.get("src" if element.tag in ("iframe", "frame") else "href")
        kinds = set((element.get("rel") or "").lower().split())
        if target and "nofollow" not in kinds and (element.tag != "link" or kinds & _LINKED):
            yield target

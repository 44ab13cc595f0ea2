"""The reader in Python, over selectolax's tree: in use where the native one is not, and what that one is tested by."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser

from crawlerproject.rules.page import page
from crawlerproject.rules.page.text_fingerprint import count_words, text_fingerprint

_SELECTOR = "a[href],area[href],iframe[src],frame[src],link[href],meta[content],base[href]"
# Elements that an application fills, by the frameworks of the day.
_ROOTS = (
    "#root,#app,#__next,#__nuxt,#___gatsby,#svelte,#app-root,#react-root,#q-app,#main-app,#application,app-root,"
    "[ng-app],[ng-version],[data-v-app],[data-reactroot],flt-glass-pane,my-app,#elm,#ember-app,#single-spa-application"
)
# Types of a script element that are executed (HTML, "prepare the script element"); the rest is data.
_EXECUTED = frozenset(
    {"", "module", "text/javascript", "application/javascript", "text/ecmascript", "application/ecmascript"}
)


UNSEEN_TAGS = ["script", "style", "noscript", "template", "svg"]  # in the source, not on the screen
# Links and the frame around the content: without them the sidebar of a manual no longer makes its pages
# alike, at half the cost of finding the main text (measured on 6,345 pages: no false duplicate at 6 bits).
FRAME_TAGS = ["a", "nav", "footer", "aside", "form"]


@dataclass(slots=True)
class _Elements:
    """What is collected of elements and their attributes."""

    targets: list[str] = field(default_factory=list)
    nofollow: int = 0
    metas: list[tuple[str, str]] = field(default_factory=list)
    base: str | None = None
    canonical: str | None = None
    anchors: list[str | None] = field(default_factory=list)  # hrefs of a and area


def read_tree(source: bytes) -> page.Document:
    """Read a page in UTF-8."""
    tree = LexborHTMLParser(source)
    found = _collect(tree)
    head = tree.head.css_first("title") if tree.head is not None else None  # in the head: an svg has titles of its own
    title = "" if head is None else " ".join(head.text().split())
    words, text = words_and_text(tree)
    whole = page.looks_whole(words, _count(found.anchors)) or b"<script" not in source.lower()
    return page.Document(
        found.targets,
        found.nofollow,
        found.metas,
        found.base,
        found.canonical,
        title,
        words,
        text,
        text_fingerprint(text),
        None if whole else read_shell(source),
    )


def read_shell(source: bytes) -> page.Shell | None:
    """``Document.shell`` by a parse of its own: few pages need it, and reading them is not dearer for it."""
    tree = LexborHTMLParser(source)
    scripts = [
        node
        for node in tree.css("script")
        if (node.attributes.get("type") or "").partition(";")[0].strip().lower() in _EXECUTED
    ]
    if not scripts:
        return None
    links = _count(node.attributes.get("href") for node in tree.css("a[href],area[href]"))
    script_characters = sum(len(node.text(deep=True)) for node in scripts)
    notice = " ".join(node.text(separator=" ") for node in tree.css("noscript")[: page.MOST_ELEMENTS])
    tree.strip_tags(UNSEEN_TAGS, recursive=True)
    shown = tree.body.text(separator=" ", skip_empty=True) if tree.body is not None else ""
    words = count_words(shown)
    if page.looks_whole(words, links):
        return None
    return page.Shell(
        len(source),
        words,
        links,
        script_characters,
        len(shown),
        shown[: page.MOST_NOTICE] if words < page.ENOUGH_WORDS else "",
        notice[: page.MOST_NOTICE],
        any(
            count_words(node.text(separator=" ")) < page.EMPTY_ROOT_WORDS
            for node in tree.css(_ROOTS)[: page.MOST_ELEMENTS]
        ),
    )


def _collect(tree: LexborHTMLParser) -> _Elements:
    found = _Elements()
    for node in tree.css(_SELECTOR):
        tag, attributes = node.tag, node.attributes
        if tag == "meta":
            content = attributes.get("content") or ""
            if name := attributes.get("name"):
                found.metas.append((name, content))
            elif (attributes.get("http-equiv") or "").strip().lower() == "refresh" and (
                target := page.refresh_target(content)
            ):
                found.targets.append(target)
            continue
        if tag == "base":
            if found.base is None:  # the first one wins, also for links before it
                found.base = attributes.get("href") or ""
            continue
        if tag == "a" or tag == "area":
            found.anchors.append(attributes.get("href"))
        target = page.link_target(tag, attributes)
        if target is None:
            continue
        if "rel" in attributes and page.has_rel(attributes, "nofollow"):
            found.nofollow += 1
        else:
            found.targets.append(target)
        if tag == "link" and found.canonical is None and page.has_rel(attributes, "canonical"):
            found.canonical = target
    return found


def words_and_text(tree: LexborHTMLParser) -> tuple[int, bytes]:
    """(visible words, text without links and frame in UTF-8); takes both out of the tree, so call it last."""
    tree.strip_tags(UNSEEN_TAGS, recursive=True)
    body = tree.body
    if body is None:
        return 0, b""
    words = count_words(body.text(separator=" ", skip_empty=True))
    tree.strip_tags(FRAME_TAGS, recursive=True)
    body = tree.body
    return words, b"" if body is None else body.text(separator=" ", skip_empty=True).encode()


def _count(hrefs: Iterable[str | None]) -> int:
    """Different addresses that can be crawled, up to ENOUGH_LINKS."""
    found: set[str] = set()
    for href in hrefs:
        target = (href or "").strip().partition("#")[0]
        with suppress(ValueError):
            if target and urlsplit(target).scheme in ("", "http", "https"):
                found.add(target)
        if len(found) == page.ENOUGH_LINKS:
            break
    return len(found)

"""Reads a page's tree, once: natively where the native reader is there, else in Python, with the same result."""

from __future__ import annotations

from typing import Any

from crawlerproject import native
from crawlerproject.rules.page.document import Document, Shell
from crawlerproject.rules.page.links import refresh_target


def read_document(source: bytes) -> Document:
    """Read a page in UTF-8. It may be a parser bomb: ``parser_bombs.weight`` is asked before."""
    page = native.reader()
    read = page.read(source) if page is not None else None
    if read is None:  # no native reader, or bytes that are not UTF-8
        return _read_tree(source)
    targets, nofollow, refreshes, metas, base, canonical, title, words, text, fingerprint, shell = read
    for place, content in reversed(refreshes):
        target = refresh_target(content)
        if target is not None:
            targets.insert(place, target)
    if shell is not None:
        shell = _shell(source, words, shell)
    return Document(targets, nofollow, metas, base, canonical, " ".join(title.split()), words, text, fingerprint, shell)


def _read_tree(source: bytes) -> Document:
    # Only when it is needed: it loads numpy.
    from crawlerproject.rules.page.tree import read_tree

    return read_tree(source)


def _shell(source: bytes, words: int, shell: Any) -> Shell | None:
    if shell:
        return Shell(len(source), words, *shell)
    # An address that needs Python's own reader of URLs decides whether there are enough links.
    from crawlerproject.rules.page.tree import read_shell

    return read_shell(source)

"""Decides whether a page could end the process that parses it, by a fault of the parser that the Python reader has.

Lexbor 3.1.0 (selectolax 1.0.2) writes behind an element of SVG or MathML that is called option and is selected: with
two hundred of them, 3 KB, memory is broken. In the native reader's lexbor it is corrected (scripts/vendor_lexbor.py).
"""

from __future__ import annotations

from crawlerproject import native


def may_break_the_parser(body: bytes) -> bool:
    """Whether ``body`` is read in Python and has what breaks it; it is then read apart, where a process may end."""
    return native.reader() is None and has_foreign_option(body)


def has_foreign_option(body: bytes) -> bool:
    """Whether there is an option with a ``selected`` behind the start of SVG or MathML.

    Many pages have that and break nothing: where SVG ends only a parser knows.
    """
    text = body.lower()
    starts = [place for name in (b"<svg", b"<math") if (place := text.find(name)) >= 0]
    if not starts:
        return False
    option = text.find(b"<option", min(starts))
    return option >= 0 and text.find(b"selected", option) >= 0

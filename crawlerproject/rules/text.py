"""Decides what a page says: the words a reader sees, and the text near-duplicates are told by."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser

UNSEEN_TAGS = ["script", "style", "noscript", "template", "svg"]  # in the source, not on the screen
# Links and the frame around the content: without them the sidebar of a manual no longer makes its pages
# alike, at half the cost of finding the main text (measured on 6,345 pages: no false duplicate at 6 bits).
FRAME_TAGS = ["a", "nav", "footer", "aside", "form"]
# Scripts that put no blank between words: kana, Han (BMP, compatibility, supplementary planes), Hangul.
CJK_RANGES = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_CJK = re.compile(f"[{CJK_RANGES}]")
# The first bytes that these have in UTF-8 (some other scripts share them, European ones do not): telling by them
# costs an eighth of a search by the expression.
_CJK_LEADS = bytes([*range(0xE3, 0xEE), 0xEF, 0xF0])


def may_have_cjk(text: str) -> bool:
    """False when no character of the text is one of ``CJK_RANGES``."""
    source = text.encode("utf-8", "surrogatepass")
    return len(source) != len(source.translate(None, _CJK_LEADS))


def count_words(text: str) -> int:
    """Words between blanks, and every CJK character as one."""
    if not may_have_cjk(text):
        return len(text.split())
    spaced, characters = _CJK.subn(" ", text)
    return len(spaced.split()) + characters


def words_and_text(tree: LexborHTMLParser) -> tuple[int, str]:
    """(visible words, text without links and frame); takes both out of the tree, so call it last."""
    tree.strip_tags(UNSEEN_TAGS, recursive=True)
    body = tree.body
    if body is None:
        return 0, ""
    words = count_words(body.text(separator=" ", skip_empty=True))
    tree.strip_tags(FRAME_TAGS, recursive=True)
    body = tree.body
    return words, "" if body is None else body.text(separator=" ", skip_empty=True)

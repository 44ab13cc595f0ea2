"""Pages to read with both readers, and where the readings differ."""

from __future__ import annotations

import random
from pathlib import Path

from crawlerproject import native
from crawlerproject.rules.page.body import weight, weight_in_python
from crawlerproject.rules.page.extract import PageText, read_in_python, read_source
from crawlerproject.rules.page.page import Document, read_document
from crawlerproject.rules.page.tree import read_tree

HANDBOOK = Path("/usr/share/doc/debian-handbook/html/en-US")

BLANKS = list(" \t\n\v\f\r\x1c\x1f\x85\xa0\u1680\u2000\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff")
TAGS = (  # noqa: SIM905 - a list literal of this would be forty lines
    "html head body frameset frame iframe noframes title base link meta style script noscript template svg math mi "
    "foreignObject desc a area nav footer aside form div p b font nobr table tr td caption select option optgroup "
    "selectedcontent button input textarea pre plaintext xmp image br hr li dl dt ul h1 main object marquee my-app "
    "app-root flt-glass-pane x-y rp ruby math annotation-xml search dialog span em i time code wbr u"
).split()
NAMES = (  # noqa: SIM905 - as above
    "href HREF xlink:href src rel REL type content name http-equiv id ID class ng-app data-v-app ng-version "
    "data-reactroot hreflang lang encoding definitionurl viewbox x property itemscope itemprop itemtype"
).split()
RELS = ["canonical", "Alternate", "next\x0bnofollow", "prev stylesheet", "noopener", "canonical\u3000alternate"]
LIKELY = {  # what an element is of no account without
    "a": ["href"], "area": ["href"], "base": ["href"], "link": ["href", "rel"], "meta": ["content", "name"],
    "iframe": ["src"], "frame": ["src"], "script": ["type"], "div": ["id"],
}  # fmt: skip
VALUES = [
    *("", " ", "/a", "/b?x=1&y", "#top", " #top", "javascript:void(0)", "JavaScript:x", "mailto:a@b", "data:,x"),
    *("//h.test/", "http://h.test/", "HTTPS://h.test/#x", "ftp://h.test/", "a:b", "1a:b", "[x]", "http://[::1", "ä"),
    *("\u212a", "http://h.test/\u0130", "nofollow", "NoFollow ugc", "canonical", "next\xa0prev", "alternate"),
    *("alternate stylesheet", "canonical\u3000nofollow", "no\u0130follow", "text/html", " Text/HTML ; x", "module"),
    *("application/rss+xml", "application/json", "text/javascript", "\u2003module", "refresh", " Refresh\x85"),
    *("0;url=/r", "3; URL='/r'", "x", "robots", "viewport", "root", "app", "APP", "ng", "\x00", "&amp;", "&nGt;&#0;"),
    *("&#xD800;", "&#128;", "\ud7ff", "text/html,application", "integration", "\U00020000"),
]
TEXTS = [
    *(
        "one two",
        "x",
        "Word",
        "enable javascript",
        "中文字",
        "カタカナ",
        "한국어",
        "\u3000",
        "\xa0",
        "\ud7b0",
        "e\u0301",
    ),
    *(
        "<",
        ">",
        "&",
        "&nbsp;",
        "&lt;p&gt;",
        "&#x3000;",
        "\x00",
        "<!-- c -->",
        "<!--",
        "-->",
        "<![CDATA[ d ]]>",
        "<?x y?>",
    ),
    *("<!doctype html>", "</", "]]>", "a" * 17, "Averylongword" * 3, "1,234.5", "\U0001f600", "var x = '<a href=y>';"),
]
MOST_EDITS = 6


def tag(chance: random.Random) -> str:
    """A start or end tag, often with attributes that matter."""
    name = chance.choice(TAGS if chance.random() < 0.7 else list(LIKELY))
    if chance.random() < 0.1:
        name = name.upper()
    if chance.random() < 0.35:
        return f"</{name}>"
    attributes, names = [], [name for name in LIKELY.get(name, []) if chance.random() < 0.8]
    names += [chance.choice(NAMES) for _ in range(chance.choice((0, 0, 1, 1, 2, 3)))]
    for called in names:
        value = chance.choice(RELS if called == "rel" else VALUES)
        quote = chance.choice(("'", '"', '"', ""))
        attributes.append(f" {called}" + (f"={quote}{value}{quote}" if chance.random() < 0.9 else ""))
    return f"<{name}{''.join(attributes)}{'/' if chance.random() < 0.05 else ''}>"


def piece(chance: random.Random) -> str:
    """A tag, a text or a blank."""
    which = chance.random()
    if which < 0.6:
        return tag(chance)
    if which < 0.7:
        return chance.choice(BLANKS)
    return chance.choice(TEXTS) * chance.choice((1, 1, 1, 2, 70))


def generated(chance: random.Random) -> bytes:
    """A page of such pieces."""
    start = "<!doctype html>" if chance.random() < 0.5 else ""
    page = start + "".join(piece(chance) for _ in range(chance.randrange(40)))
    return page.encode("utf-8", "replace")


def mutated(chance: random.Random, page: bytes) -> bytes:
    """The page with a few places of it cut, doubled, moved, put in another case or written over."""
    text = page.decode("utf-8", "replace")
    for _ in range(chance.randrange(1, MOST_EDITS)):
        start = chance.randrange(len(text) + 1)
        end = min(len(text), start + chance.choice((1, 1, 3, 20, 200, 2_000)))
        part = text[start:end]
        text = chance.choice(
            [
                text[:start] + text[end:],
                text[:start] + part + part + text[end:],
                text[:start] + piece(chance) + text[start:],
                text[:start] + piece(chance) + text[end:],
                text[:start] + part.swapcase() + text[end:],
                text[:start] + text[end:] + part,
            ]
        )
    return text.encode("utf-8", "replace")


def differences(source: bytes) -> list[str]:
    """The parts of a page that the native reader reads unlike the Python one."""
    page = native.reader
    assert page is not None
    ours, theirs = read_document(source), read_tree(source)
    found = [
        f"{name}: {one!r}, but in Python {other!r}"
        for name, one, other in zip(Document._fields, ours, theirs, strict=True)
        if one != other or type(one) is not type(other)
    ]
    address = "http://h.test/a/b?c", "utf-8"
    shown, expected = (read(source, *address, structured=True) for read in (read_source, read_in_python))
    found += [
        f"{name} of extract: {one!r}, but in Python {other!r}"
        for name, one, other in zip(PageText._fields, shown, expected, strict=True)
        if one != other or type(one) is not type(other)
    ]
    if weight(source) is not weight_in_python(source):
        found.append(f"weight: {weight(source)!r}, but in Python {weight_in_python(source)!r}")
    return found

"""html5lib's tests of which encoding a page is in, and hosts beyond ASCII as by a parser of the newest Unicode."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import ada_url

from benchmarks.conformance.suite import Case, Suite, unpacked
from crawlerproject.rules.page.body import decode
from crawlerproject.rules.url.urls import Base, UrlRefused, parse
from crawlerproject.rules.web_encodings import encoding_of

_TEST = re.compile(rb"(?:\A|\n)#data\n(.*?)\n#encoding\n([^\n]+)(?=\n)", re.DOTALL)
_IN_TEXT = re.compile(rb"<(?:script|style)[^<]*<meta")
# Where scripts have marks, digits and what newer versions of Unicode or of UTS 46 have changed.
_CODE_POINTS = (*range(0x80, 0x3000), *range(0x10A00, 0x11000), *range(0x1E800, 0x1F000), *range(0x2F800, 0x2FA20))


def _pages(sources: Path) -> Iterator[Case]:
    folder = unpacked(sources, "html5lib") / "html5lib/tests/testdata/encoding"
    for path in sorted(folder.glob("*.dat")):
        for number, (page, label) in enumerate(_TEST.findall(path.read_bytes()), 1):
            # A page of nothing but ASCII is UTF-8 for us, whatever it says late: so it ends with another octet.
            ours = decode(page + b"\xff.", None)[1]
            within = ", in text" if _IN_TEXT.search(page) else ""
            yield Case(f"{path.stem}/{number}{within}", ours, encoding_of(label.decode()))


def _host(url: str) -> str | None:
    try:
        return ada_url.URL(url).hostname
    except ValueError:
        return None


def _ours(url: str) -> str | None:
    try:
        return parse(url).host
    except UrlRefused:
        return None


def _hosts(sources: Path) -> Iterator[Case]:
    page = Base("http://strasse.example/")
    for number in _CODE_POINTS:
        for name in (f"{chr(number)}.example", f"stra{chr(number)}e.example"):
            url = f"http://{name}/"
            theirs, link = _host(url), page.join(url)
            empty = ", empty" if theirs is not None and (theirs.startswith(".") or ".." in theirs) else ""
            yield Case(f"U+{number:04X} {len(name)}{empty}", (_ours(url), link and link.host), (theirs, theirs))


SUITES = (
    Suite(
        "html5lib encodings",
        "html5lib 1.1, encoding",
        _pages,
        {"*, in text": "browsers tokenize as they look for a declaration: one in a script or a style is none"},
    ),
    Suite(
        "hosts beyond ASCII",
        "ada-url 4.0.0 (UTS 46 of its Unicode)",
        _hosts,
        {"*, empty": "a name with an empty label can be asked of no DNS"},
        offline=True,
    ),
)

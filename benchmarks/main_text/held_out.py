"""Pages whose main text is known by their source: what neither our rules nor our labels have seen.

``python -m benchmarks.main_text.held_out FOLDER [--peers PYTHON]``. FOLDER holds Debian's ``PACKAGES``,
unpacked (``apt-get download NAME``, ``dpkg -x``), and npm's own package (``npm pack npm``, ``tar -x``): each has HTML
pages, and the same documents without a page around them: info nodes, man pages, plain text, Markdown, reStructuredText.
The words of the one are what is wanted of the other. What a rendering adds to them (dates, "Note") counts against all
readers alike. Scores as in ``__main__``.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import subprocess
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from benchmarks.main_text.__main__ import KIND, LEAST_WORDS, PEERS, Page, print_scores, words
from crawlerproject.rules.page.body import decode

PACKAGES = (
    *("octave-doc", "zsh-doc", "git-doc", "git-man", "erlang-doc", "erlang-manpages", "postfix-doc", "docutils-doc"),
    *("python-flask-doc", "debian-policy", "sphinx-doc", "nodejs-doc"),
)
A_KIND = 40
"""Pages of each, evenly spread."""
KNOWN = "Sphinx"
"""The one generator that our rules know by its marks."""
_DOC, _MAN, _INFO = "usr/share/doc", "usr/share/man", "usr/share/info"
_OVERSTRUCK = re.compile(".\b")
# reStructuredText: what is no text of the page; pages whose text comes from elsewhere are left out.
_WITHOUT = "image|figure|index|highlight|code-block|module|target|contents|class|tabs|code|role|math"
_FROM_ELSEWHERE = re.compile(r"^ *\.\. (auto\w+|literalinclude|include|toctree|autofunction)::", re.MULTILINE)
_NO_TEXT = re.compile(
    rf"^ *\.\. (_.*|\|.*|[\w:-]*({_WITHOUT})::.*|[^\n:]*$)|^ +:[\w-]+:.*$",
    re.MULTILINE,
)
# Markdown: front matter, comments (Node's hold histories), tags, definitions and targets of links, pictures.
_MARKS = re.compile(
    r"\A---\n.*?\n---\n|<!--.*?-->|</?\w[^<>\n]*>|^\[[^\]\n]+\]:.*$|!\[[^\]]*\]\([^)]*\)|(?<=\])(\([^)\s]*\)|\[[^\]\n]*\])",
    re.DOTALL | re.MULTILINE,
)
_ROLE = re.compile(r":[\w:+.-]+:(?=`)")
_TARGET = re.compile(r"\s*<[^<>`]+>(?=`)")
_SHORTENED = re.compile(r"`[~!][\w.]*?(\w+(?:\(\))?)`")


def pages(root: Path) -> Iterator[tuple[str, Path, str]]:
    """Kind, HTML file and the same document's text, of every pair of files below ``root``."""
    yield from _nodes("texinfo", root / _DOC / "octave" / "octave.html", root / _INFO, "octave")
    yield from _nodes("texinfo", root / _DOC / "zsh-doc", root / _INFO, "zsh")
    for html in sorted((root / _DOC / "git-doc").glob("git*.html")):
        yield from _man("asciidoc", html, root / _MAN / "man1" / f"{html.stem}.1.gz")
    for html in sorted((root / _DOC / "erlang-doc" / "lib").glob("*/doc/html/*.html")):
        yield from _man("Erlang", html, root / _MAN / "man3" / f"{html.stem}.3erl.gz")
    for text in sorted((root / _DOC / "postfix").glob("*_README*")):
        html = root / _DOC / "postfix" / "html" / f"{text.name.removesuffix('.gz')}.html"
        yield "Postfix", html, _OVERSTRUCK.sub("", _opened(text))
    for text in sorted((root / _DOC / "docutils-doc").rglob("*.txt")):
        yield from _restructured("docutils", text.with_suffix(".html"), text)
    for text in sorted((root / _DOC / "nodejs" / "api").glob("*.md*")):
        yield "Node.js", text.with_name(f"{text.name.partition('.')[0]}.html"), _marked_down(_opened(text))
    docs = root / "package" / "docs"
    for text in sorted((docs / "content").rglob("*.md")):
        html = docs / "output" / text.relative_to(docs / "content").with_suffix(".html")
        yield "npm", html, _marked_down(text.read_text("utf-8"))
    for manual in ("python-flask-doc/html", "debian-policy/policy.html", "sphinx-doc/html"):
        sources = root / _DOC / manual / "_sources"
        for text in sorted(sources.rglob("*.rst.txt")):
            html = root / _DOC / manual / text.relative_to(sources)
            yield from _restructured(KNOWN, html.with_name(text.name.removesuffix(".rst.txt") + ".html"), text)


def _opened(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", "replace")


def _nodes(kind: str, folder: Path, info: Path, name: str) -> Iterator[tuple[str, Path, str]]:
    """Nodes without a menu, which is a list of links in one form and a table of contents in the other."""
    parts = sorted(info.glob(f"{name}.info-*.gz"), key=lambda path: int(re.findall(r"-(\d+)", path.name)[-1]))
    for node in "".join(map(_opened, parts)).split("\x1f"):
        head, _, text = node.strip("\n").partition("\n")
        if (found := re.search(r"Node: ([^,\n]+),", head)) and "* Menu:" not in text:
            escaped = re.sub(r"[^\w\s]", lambda sign: f"_{ord(sign[0]):04x}", found[1].strip())
            yield kind, folder / f"{escaped.replace(' ', '-')}.html", text


def _man(kind: str, html: Path, page: Path) -> Iterator[tuple[str, Path, str]]:
    """As a terminal of 1,000 columns has it, without the lines at the top and the bottom."""
    if page.exists():
        given = {**os.environ, "MANWIDTH": "1000", "MAN_KEEP_FORMATTING": "", "LC_ALL": "C.UTF-8"}
        shown = subprocess.run(["man", "--nh", "-l", page], env=given, capture_output=True, check=True).stdout.decode()
        yield kind, html, "\n".join(_OVERSTRUCK.sub("", shown).strip().splitlines()[1:-1])


def _restructured(kind: str, html: Path, source: Path) -> Iterator[tuple[str, Path, str]]:
    text = source.read_text("utf-8")
    if not _FROM_ELSEWHERE.search(text):
        yield kind, html, _SHORTENED.sub(r"\1", _TARGET.sub("", _ROLE.sub("", _NO_TEXT.sub("", text))))


def _marked_down(text: str) -> str:
    return _MARKS.sub(" ", text)


def chosen(found: Iterable[tuple[str, Path, str]]) -> list[Page]:
    """Of each kind A_KIND pages at most. The title counts neither way, as in the other set."""
    kinds: dict[str, list[Page]] = defaultdict(list)
    for kind, html, text in found:
        if html.exists() and len(words(text)) >= LEAST_WORDS:
            tree = LexborHTMLParser(decode(html.read_bytes(), KIND)[0])
            neither = Counter(word for node in tree.css("h1, .headerlink") for word in words(node.text(separator=" ")))
            kinds[kind].append(Page(kind, html, Counter(words(text)) - neither, neither))
    counts = {kind: min(A_KIND, len(of)) for kind, of in kinds.items()}
    return [of[n * len(of) // counts[kind]] for kind, of in kinds.items() for n in range(counts[kind])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", type=Path, default=PEERS)
    given = parser.parse_args()
    print_scores(chosen(pages(given.folder)), given.peers)


if __name__ == "__main__":
    main()

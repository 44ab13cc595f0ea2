"""How well the main text of pages is found: F1 of words by kind, beside trafilatura and Resiliparse.

``python -m benchmarks.main_text PAGES [--peers PYTHON] [--packages FOLDER]``. The labels are rules, not text
(``labels.tsv``): for each page, or for ``count`` pages spread evenly over a pattern, the CSS selectors of the main text
and of what stands in it without belonging to it, chosen by looking at each template. PAGES holds saved pages of the web
as ``web/DIGEST.html``; the others are manuals of Debian's packages, unpacked into ``--packages`` (``apt-get download
NAME``, ``dpkg -x``). The peers' Python has ``trafilatura`` and ``resiliparse`` (``requirements-bench.txt``). Words of
headings of the first level, captions and dates count neither way. It ends with how many pages of PostgreSQL's manual
have DocBook's navigation in their main text.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from crawlerproject.rules.page.body import decode
from crawlerproject.rules.page.extract import main_text, read_page

PEERS = Path(".venv-bench/bin/python")
LABELS = Path(__file__).with_name("labels.tsv")
WEB = "real"
KIND = "text/html"
LEAST_WORDS = 100
"""Of a label: shorter pages are lists of links, which have no main text."""
# A letter of a script that puts no blanks between words is a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_UNSEEN = "script, style, noscript, template, iframe, svg, form"
_INLINE = ["a", "b", "code", "em", "font", "i", "small", "span", "strong", "sub", "sup", "tt", "u", "var"]
_NEITHER = "h1, figcaption, time, .headerlink"
_NAVIGATION = re.compile(r"(?m)^Prev\b.*\b(Home|Next|Up)\b")
_PEER = """
import json, pathlib, sys, time
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.encoding import detect_encoding
from resiliparse.parse.html import HTMLTree
from trafilatura import extract
READERS = {
    "resiliparse": lambda body: extract_plain_text(
        HTMLTree.parse_from_bytes(body, detect_encoding(body)), main_content=True, alt_texts=False),
    "trafilatura": lambda body: extract(body, include_comments=False),
}
for line in sys.stdin:
    body = pathlib.Path(line.strip()).read_bytes()
    found = {}
    for name, read in READERS.items():
        began = time.process_time()
        text = read(body) or ""
        found[name] = text, time.process_time() - began
    print(json.dumps(found), flush=True)
"""


class Page(NamedTuple):
    """One labelled page."""

    kind: str
    file: Path
    wanted: Counter[str]
    neither: Counter[str]


class Score(NamedTuple):
    """Of one page."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        """Their harmonic mean."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path)
    parser.add_argument("--packages", type=Path, default=Path("/"))
    parser.add_argument("--peers", type=Path, default=PEERS)
    given = parser.parse_args()
    print_scores(labelled(given.pages, given.packages), given.peers)
    manual = sorted(given.packages.glob("usr/share/doc/postgresql-doc-15/html/*.html"))
    kept = sum(_NAVIGATION.search(_main(file.read_bytes())) is not None for file in manual)
    print(f"DocBook's navigation in the main text: {kept} of {len(manual)} pages of PostgreSQL's manual")


def print_scores(pages: list[Page], python: Path) -> None:
    """What each reader finds of these pages, by kind and in all; ``python``: with the peers."""
    bodies = [page.file.read_bytes() for page in pages]
    found = {
        "text": _read(lambda body: read_page(body, url="http://a.test/", content_type=KIND).text, bodies),
        "text_main": _read(_main, bodies),
        **_peers(python, pages),
    }
    scores = {
        name: [score(text, page) for text, page in zip(texts, pages, strict=True)] for name, (texts, _) in found.items()
    }
    kinds: dict[str, list[int]] = defaultdict(list)
    for place, page in enumerate(pages):
        kinds[page.kind].append(place)
    print(f"{len(pages)} pages of {len(kinds)} kinds")
    print(f"{'':14}{'pages':>6}", *(f"{name:>12}" for name in found))
    for kind, places in kinds.items():
        print(f"{kind:14}{len(places):6}", *(f"{mean(scores[name][n].f1 for n in places):12.3f}" for name in found))
    for what in ("f1", "precision", "recall"):
        print(f"{what:20}", *(f"{mean(getattr(one, what) for one in scores[name]):12.3f}" for name in found))
    print(f"{'ms of CPU a page':20}", *(f"{1000 * seconds / len(pages):12.2f}" for _, seconds in found.values()))


def labelled(web: Path, packages: Path) -> list[Page]:
    """All pages of the labels; a file that is missing ends it."""
    found = []
    with LABELS.open(newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            root = web if row["source"] == WEB else packages
            made = [page for file in sorted(root.glob(row["pages"])) if (page := _label(file, row)) is not None]
            count = int(row["count"])
            if len(made) < count:
                raise SystemExit(f"{row['source']}: {len(made)} of {count} pages of {row['pages']} below {root}")
            found += [made[n * len(made) // count] for n in range(count)]
    return found


def _label(file: Path, row: dict[str, str]) -> Page | None:
    tree = LexborHTMLParser(decode(file.read_bytes(), KIND)[0])
    for node in tree.css(", ".join(filter(None, (_UNSEEN, row["not_main"])))):
        node.decompose()
    neither = Counter(word for node in tree.css(_NEITHER) for word in words(node.text(separator=" ")))
    for node in tree.css(_NEITHER):
        node.decompose()
    tree.unwrap_tags(_INLINE)
    tree.merge_text_nodes()
    chosen = tree.css(row["main"])
    ids = {node.mem_id for node in chosen}
    wanted = Counter(word for node in chosen if not _within(node, ids) for word in words(node.text(separator=" ")))
    return Page(row["kind"], file, wanted, neither) if wanted.total() >= LEAST_WORDS else None


def _within(node: LexborNode, chosen: set[int]) -> bool:
    """Whether another chosen node holds it, so that it is not counted twice."""
    above = node.parent
    while above is not None:
        if above.mem_id in chosen:
            return True
        above = above.parent
    return False


def words(text: str) -> list[str]:
    """In small letters."""
    return _WORD.findall(text.lower())


def score(text: str, page: Page) -> Score:
    """Precision and recall of the words, each as often as it stands there."""
    found = Counter(words(text))
    both = (found & page.wanted).total()
    judged = found - ((found - page.wanted) & page.neither)
    return Score(both / max(1, judged.total()), both / page.wanted.total())


def _main(body: bytes) -> str:
    found = main_text(body, KIND)
    return found.text if found is not None else ""


def _read(reader: Callable[[bytes], str], bodies: list[bytes]) -> tuple[list[str], float]:
    began = time.process_time()
    return [reader(body) for body in bodies], time.process_time() - began


def _peers(python: Path, pages: list[Page]) -> dict[str, tuple[list[str], float]]:
    asked = "\n".join(str(page.file) for page in pages)
    made = subprocess.run([python, "-c", _PEER], input=asked, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in made.stdout.splitlines()]
    return {
        name: ([answer[name][0] for answer in answers], sum(answer[name][1] for answer in answers))
        for name in ("resiliparse", "trafilatura")
    }


if __name__ == "__main__":
    main()

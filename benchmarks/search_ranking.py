"""How far up known answers stand in ``scrapy search``: mean reciprocal rank, by the weights of the ranks.

``python -m benchmarks.search_ranking [--packages FOLDER]``: FOLDER holds Debian's packages ``postgresql-doc-15``,
``python3.11-doc``, ``python-sqlalchemy-doc``, ``apache2-doc`` and ``debian-policy``, unpacked (``apt-get download``,
``dpkg -x``), a host each. Queries with known answers are the manuals' own: the titles of pages (without numbers; one
that several pages have is left out), and the entries of PostgreSQL's and Python's index with the pages that each names.
Then a letter of one word of each title is left out, swapped or doubled. Ten answers count.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from urllib.parse import urldefrag, urljoin

import pyarrow as pa
import pyarrow.parquet as pq
from selectolax.lexbor import LexborHTMLParser

from crawlerproject.batch.fulltext import Search, search
from crawlerproject.batch.pagerank import duck_tables, work_folder, write_ranks
from crawlerproject.rules.answer_order import Weights
from crawlerproject.rules.page.extract import main_text, read_page
from tests.batch.loaded import load

MANUALS = {
    "postgresql.test": "usr/share/doc/postgresql-doc-15/html",
    "python.test": "usr/share/doc/python3.11/html",
    "sqlalchemy.test": "usr/share/doc/python-sqlalchemy-doc/html",
    "apache.test": "usr/share/doc/apache2-doc/manual/en",
    "policy.test": "usr/share/doc/debian-policy/policy.html",
}
INDEXES = {
    "http://postgresql.test/bookindex.html": "dt > a.indexterm",
    "http://python.test/genindex-all.html": "td li > a",
}
KINDS = ("titles", "postgresql.test", "python.test", "misspelt")
WEIGHTS = [Weights(0.0, 0.0), Weights(), Weights(0.5, 0.2)]
_EACH, _LIMIT, _SEED = 170, 10, 7
_NUMBER = re.compile(r"^(Chapter |Part |Appendix )?[\w.]{1,8}\.\s+|\s+[—–]\s.*|\s+- (Apache|SQLAlchemy).*")
_MARKS = re.compile(r"[^\w\s]+")
_SCHEMA = {
    "pages": pa.schema([(name, pa.string()) for name in ("url", "title", "text", "text_main", "language")]
                       + [("fetch_time", pa.timestamp("us", tz="UTC"))]),
    "links": pa.schema([(name, pa.string()) for name in ("source", "target", "rel")]),
}  # fmt: skip

Known = Mapping[str, frozenset[str]]
"""Query -> the addresses that answer it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, default=Path("/"))
    given = parser.parse_args()
    files = {
        f"http://{host}/{file.relative_to(given.packages / folder)}": file
        for host, folder in MANUALS.items() for file in sorted((given.packages / folder).rglob("*.html"))
    }  # fmt: skip
    with TemporaryDirectory() as work:
        folder = Path(work)
        titles = _write(folder, files)
        load(folder / "pages", folder / "search")
        with work_folder(folder) as spilled, duck_tables(spilled, "", lambda _: None) as tables:
            write_ranks(tables, folder / "pages", folder / "links", folder)
        asked = _queries(files, titles)
        print(f"{len(titles)} pages;", ", ".join(f"{len(asked[kind])} {kind}" for kind in KINDS))
        print(f"{'page host':10}", *(f"{kind:>16}" for kind in (*KINDS, "all but misspelt")))
        for weights in WEIGHTS:
            ranks = {kind: [_reciprocal(folder, *each, weights) for each in asked[kind].items()] for kind in KINDS}
            every = [rank for kind in KINDS[:-1] for rank in ranks[kind]]
            print(
                f"{weights.page:4} {weights.host:4} ",
                *(f"{mean(one):16.3f}" for one in (*ranks.values(), every)),
                flush=True,
            )


def _write(folder: Path, files: Mapping[str, Path]) -> dict[str, str]:
    """Pages and links as ``scrapy process --main`` has them; the title of each page."""
    pages, links, titles = [], [], {}
    for url, file in files.items():
        if url in INDEXES or "genindex" in url:
            continue  # the questions themselves
        body = file.read_bytes()
        read = read_page(body, url=url, content_type="text/html")
        article = main_text(body, "text/html")
        titles[url] = read.title
        pages.append({
            "url": url, "title": read.title, "text": read.text, "text_main": article.text if article else None,
            "language": "en", "fetch_time": datetime(2026, 1, 1, tzinfo=UTC),
        })  # fmt: skip
        links += [{"source": url, "target": link.target, "rel": link.rel} for link in read.links]
    for name, rows in (("pages", pages), ("links", links)):
        (folder / name).mkdir()
        pq.write_table(pa.Table.from_pylist(rows, _SCHEMA[name]), folder / name / "all.parquet")
    return titles


def _queries(files: Mapping[str, Path], titles: Mapping[str, str]) -> dict[str, Known]:
    dice = random.Random(_SEED)
    plain = {url: _words(_NUMBER.sub("", title)) for url, title in titles.items()}
    times = Counter(plain.values())
    known = {text: frozenset({url}) for url, text in plain.items() if times[text] == 1 and len(text) > 3}
    found: dict[str, Known] = {"titles": _some(known, dice)}
    for index, selector in INDEXES.items():
        entries: dict[str, frozenset[str]] = {}
        for text, target in _entries(index, files[index], selector):
            if target in titles and len(text) > 3:
                entries[text] = entries.get(text, frozenset()) | {target}
        found[index.split("/")[2]] = _some(entries, dice)
    found["misspelt"] = {wrong: answer for text, answer in found["titles"].items() if (wrong := _misspelt(text, dice))}
    return found


def _entries(url: str, file: Path, selector: str) -> Iterator[tuple[str, str]]:
    for node in LexborHTMLParser(file.read_bytes()).css(selector):
        around = node.parent
        text = around.text().split(",")[0] if around is not None and "dt" in selector else node.text()
        yield _words(text), urldefrag(urljoin(url, node.attributes.get("href") or "")).url


def _words(text: str) -> str:
    return " ".join(_MARKS.sub(" ", text).lower().split())  # OR and AND in capitals would be operators


def _some(known: Known, dice: random.Random) -> Known:
    return {text: known[text] for text in dice.sample(sorted(known), min(_EACH, len(known)))}


def _misspelt(text: str, dice: random.Random) -> str:
    """With one letter wrong, not the first, in one of the words that are long enough; "" where none is."""
    words = text.split()
    places = [place for place, word in enumerate(words) if len(word) >= 6 and word.isalpha()]
    if not places:
        return ""
    place = dice.choice(places)
    word, at = words[place], dice.randrange(1, len(words[place]) - 1)
    before, letter, after = word[:at], word[at], word[at + 1 :]
    changed = [before + after, before + after[0] + letter + after[1:], before + 2 * letter + after]
    words[place] = dice.choice(changed)
    return " ".join(words)


def _reciprocal(folder: Path, words: str, answers: frozenset[str], weights: Weights) -> float:
    found = search(folder / "search", Search(words, _LIMIT, weights=weights), folder / "pages.parquet").hits
    return next((1 / place for place, hit in enumerate(found, 1) if hit.url in answers), 0.0)


if __name__ == "__main__":
    main()

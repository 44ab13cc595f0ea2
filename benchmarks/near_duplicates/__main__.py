"""``python -m benchmarks.near_duplicates [--pages DIR]``: which features and which distance tell near duplicates.

Pairs of real pages (Debian's manuals, and with ``--pages`` a folder of other HTML files) are labelled by an exact
measure: the Jaccard coefficient of the five-word shingles of their main texts. Against these labels stand several
SimHash features at several distances. A second table counts what a crawl would get wrong: pages of a site that lie
within the distance of another, different page of it. A third has the cost of ours per page.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from simhash import Simhash

from benchmarks.near_duplicates.corpus import OTHER, WEB, Page, Pair, install, jaccard, pairs, sites
from crawlerproject.rules.page.text_fingerprint import MAX_WORDS, fingerprint, shingles, text_fingerprint, word_hashes
from crawlerproject.rules.text_likeness import NEAR_BITS

DISTANCES = (1, 2, 3, 4, 6, 8, 10)
Scheme = Callable[[Page], int | None]
failed: Counter[str] = Counter()


def _joined(words: list[str]) -> list[str]:
    """Shingles as the package wants them: texts."""
    return list({" ".join(three) for three in zip(words, words[1:], words[2:], strict=False)})


def _package(page: Page) -> int | None:
    try:
        value: int = Simhash(page.full).value
    except OverflowError:
        failed["package"] += 1
        return None
    return value


def _of_words(text: str, in_a_row: int) -> int:
    return fingerprint(shingles(word_hashes(text.encode(), MAX_WORDS), in_a_row))


SCHEMES: dict[str, Scheme] = {
    "4 characters, counted, all text (the package's own)": _package,
    "words, all text": lambda page: _of_words(page.full, 1),
    "words, without links and frame": lambda page: _of_words(page.text, 1),
    "3 words, all text": lambda page: _of_words(page.full, 3),
    "**3 words, without links and frame (ours)**": lambda page: text_fingerprint(page.text.encode()),
}


class Values:
    """Fingerprints by scheme, each page's once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], int | None] = {}

    def of(self, scheme: str, page: Page) -> int | None:
        key = scheme, id(page)
        if key not in self._known:
            self._known[key] = SCHEMES[scheme](page)
        return self._known[key]


def pair_table(labelled: list[Pair], values: Values) -> None:
    """Precision and recall over the pairs."""
    print(f"| features | {' | '.join(f'{k} bits' for k in DISTANCES)} |\n|---|{'---|' * len(DISTANCES)}")
    for scheme in SCHEMES:
        made = [(values.of(scheme, pair.one), values.of(scheme, pair.two), pair.same) for pair in labelled]
        known = [((one ^ two).bit_count(), same) for one, two, same in made if one is not None and two is not None]
        cells = []
        for k in DISTANCES:
            hits = [same for bits, same in known if bits <= k]
            precision = sum(hits) / len(hits) if hits else 1.0
            cells.append(f"{precision:.3f} / {sum(hits) / sum(pair.same for pair in labelled):.3f}")
        print(f"| {scheme} | {' | '.join(cells)} |", flush=True)


def kind_table(labelled: list[Pair], values: Values) -> None:
    """What ours finds of each kind of pair at the distance of the settings, rightly or wrongly."""
    limit, (*_, ours) = NEAR_BITS, SCHEMES
    within = f"of these within {limit} bits"
    print(f"\n| pairs | the same | {within} | not | {within} |\n|---|---|---|---|---|")
    counts: dict[str, list[int]] = {}
    for pair in labelled:
        one, two = values.of(ours, pair.one), values.of(ours, pair.two)
        row = counts.setdefault(pair.kind, [0, 0, 0, 0])
        at = 0 if pair.same else 2
        row[at] += 1
        row[at + 1] += one is not None and two is not None and (one ^ two).bit_count() <= limit
    for kind, row in sorted(counts.items()):
        print(f"| {kind} | {' | '.join(map(str, row))} |", flush=True)


def crawl_table(found: dict[str, list[Page]], values: Values) -> None:
    """Pages that a crawl would call a near duplicate of a page that is another, within a site and of all sites."""
    alone = {site: pages for site, pages in found.items() if not site.startswith("handbook ")}
    everything = [page for pages in alone.values() for page in pages]
    heads = [*(f"{k} bits" for k in DISTANCES), "across sites, 3 bits"]
    print(f"\n| wrongly marked, of {len(everything)} pages | {' | '.join(heads)} |")
    print(f"|---|{'---|' * (len(DISTANCES) + 1)}")
    for scheme in SCHEMES:
        wrong = {k: sum(len(_wrong(pages, scheme, k, values)) for pages in alone.values()) for k in DISTANCES}
        across = len(_wrong(everything, scheme, 3, values))
        cells = [f"{count} ({count / len(everything):.2%})" for count in (*wrong.values(), across)]
        print(f"| {scheme} | {' | '.join(cells)} |", flush=True)


def _wrong(pages: list[Page], scheme: str, k: int, values: Values) -> set[int]:
    """Places of pages that have one before them within ``k`` bits, and none of those is the same page."""
    made = [(page, value) for page in pages if (value := values.of(scheme, page)) is not None]
    array = np.array([value for _, value in made], np.uint64)
    wrong = set()
    for at in range(1, len(made)):
        near = np.flatnonzero(np.bitwise_count(array[:at] ^ array[at]) <= k)
        if len(near) and all(jaccard(made[at][0], made[int(other)][0]) < OTHER for other in near[:20]):
            wrong.add(at)
    return wrong


def _package_alone(text: str) -> None:
    Simhash(_joined(text.lower().split()))


def cost_table(found: dict[str, list[Page]]) -> None:
    """CPU of words, shingles and fingerprint, from a text that reading the page has made already."""
    print("\n| ms of CPU a page | median | mean | the package alone, same features: mean | median words |")
    print("|---|---|---|---|---|")
    for site, pages in found.items():
        if site.startswith("handbook "):
            continue
        ours, package = [], []
        for page in pages[:300]:
            source = page.text.encode()
            ours.append(_spent(partial(text_fingerprint, source)))
            package.append(_spent(partial(_package_alone, page.text)))
        words = statistics.median(len(page.text.split()) for page in pages[:300])
        means = f"{statistics.mean(ours):.2f} | {statistics.mean(package):.2f}"
        print(f"| {site} | {statistics.median(ours):.2f} | {means} | {words:.0f} |", flush=True)


def _spent(job: Callable[[], object]) -> float:
    """Milliseconds of CPU, the least of three: other programs only ever add."""
    spent = []
    for _ in range(3):
        began = time.process_time()
        job()
        spent.append((time.process_time() - began) * 1e3)
    return min(spent)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.near_duplicates", description=__doc__)
    parser.add_argument("--pages", type=Path, help=f"a folder of HTML pages of different sites (site {WEB!r})")
    parser.add_argument("--most", type=int, default=800, help="pages of each site (default 800)")
    parser.add_argument("--changed", type=int, default=1500, help="pages that are changed in two ways (default 1500)")
    given = parser.parse_args()
    install()
    chance = random.Random(4)
    found = sites(given.most, given.pages, chance)
    print({site: len(pages) for site, pages in found.items()}, file=sys.stderr, flush=True)
    labelled = list(pairs(found, given.changed, chance))
    same = sum(pair.same for pair in labelled)
    print(f"{len(labelled)} pairs: {same} the same, {len(labelled) - same} not\n")
    values = Values()
    pair_table(labelled, values)
    kind_table(labelled, values)
    crawl_table(found, values)
    cost_table(found)
    if failed["package"]:
        print(f"\nThe package raised OverflowError on {failed['package']} pages.")


if __name__ == "__main__":
    main()

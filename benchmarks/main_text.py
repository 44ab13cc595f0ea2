"""What ``text_main`` keeps and leaves out of real pages, by the words that trafilatura takes for the article.

``python -m benchmarks.main_text FOLDER [--pages N] [--peers PYTHON]``: FOLDER holds HTML pages, one a file; the peers'
Python has ``trafilatura`` (``requirements-bench.txt``). Precision is the share of our words that trafilatura has too,
recall the share of its words that we have; medians over the pages for which both find a text. trafilatura is no truth:
it is what others use.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from statistics import mean, median

from crawlerproject.rules.page.extract import main_text, read_page

PEERS = Path(".venv-bench/bin/python")
KIND = "text/html"
_PEER = """
import json, pathlib, sys, time
from trafilatura import extract
for line in sys.stdin:
    body = pathlib.Path(line.strip()).read_bytes()
    began = time.process_time()
    text = extract(body, include_comments=False) or ""
    print(json.dumps([text, time.process_time() - began]), flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--peers", type=Path, default=PEERS)
    given = parser.parse_args()
    files = list(islice(sorted(path for path in given.folder.rglob("*") if path.is_file()), given.pages))
    asked = "\n".join(map(str, files))
    made = subprocess.run([given.peers, "-c", _PEER], input=asked, capture_output=True, text=True, check=True)
    theirs = [json.loads(line) for line in made.stdout.splitlines()]
    bodies = [path.read_bytes() for path in files]
    print(f"{len(files)} pages; trafilatura: {1000 * mean(seconds for _, seconds in theirs):.1f} ms a page")
    readers: dict[str, Callable[[bytes], str]] = {
        "text": lambda body: read_page(body, url="http://a.test/", content_type=KIND).text,
        "text_main": lambda body: found.text if (found := main_text(body, KIND)) is not None else "",
    }
    for name, reader in readers.items():
        began = time.process_time()
        ours = [reader(body) for body in bodies]
        spent = time.process_time() - began
        judged = [_overlap(mine, text) for mine, (text, _) in zip(ours, theirs, strict=True) if mine and text]
        precision, recall = median(one[0] for one in judged), median(one[1] for one in judged)
        same = median(2 * p * r / (p + r) if p + r else 0.0 for p, r in judged)
        print(
            f"{name}: precision {precision:.3f}, recall {recall:.3f}, F1 {same:.3f}, over {len(judged)} pages; "
            f"{1000 * spent / len(bodies):.2f} ms a page"
        )


def _overlap(ours: str, theirs: str) -> tuple[float, float]:
    mine, wanted = Counter(ours.split()), Counter(theirs.split())
    both = (mine & wanted).total()
    return both / max(1, mine.total()), both / max(1, wanted.total())


if __name__ == "__main__":
    main()

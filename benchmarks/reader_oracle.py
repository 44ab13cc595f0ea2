"""``python -m benchmarks.reader_oracle [--mutated 200_000]``: both readers of pages on all there is.

Reads the real pages beside the project (shared/real-pages.tar.zst), all HTML below /usr/share/doc and then mutated and
generated pages, natively and in Python, and prints every difference, and what the readers cost. tests/native compares
a few.
"""

from __future__ import annotations

import argparse
import gzip
import math
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from crawlerproject import native
from crawlerproject.rules.page.body import in_utf8, is_bomb
from crawlerproject.rules.page.page import MAX_HTML_BYTES, read_document
from crawlerproject.rules.page.tree import read_tree
from tests.native.pages import differences, generated, mutated

REAL_PAGES = Path(__file__).resolve().parents[2] / "shared" / "real-pages.tar.zst"
DOCUMENTS = Path("/usr/share/doc")
_SUFFIXES = (".html", ".htm", ".xhtml", ".html.gz")
_SHOWN = 600  # characters of a difference
_MUTATED_BYTES = 8_000  # of a page that is mutated: edits count for more in small ones
_GENERATED_SHARE = 0.3


def real_pages(archive: Path, scratch: str) -> Iterator[bytes]:
    """The bodies in the archive; none if it is not there."""
    if not archive.is_file():
        print(f"{archive} is not there", file=sys.stderr)
        return
    subprocess.run(["tar", "--zstd", "-xf", str(archive), "-C", scratch], check=True)
    for path in sorted(Path(scratch).rglob("*")):
        if path.is_file():
            yield path.read_bytes()


def documents() -> Iterator[bytes]:
    """HTML of this machine's packages."""
    for path in sorted(DOCUMENTS.rglob("*")):
        if path.name.endswith(_SUFFIXES) and path.is_file():
            body = path.read_bytes()
            yield gzip.decompress(body) if path.suffix == ".gz" else body


def variants(bodies: list[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Pages that are not among the ``bodies``."""
    chance = random.Random(seed)
    for _ in range(count):
        if chance.random() < _GENERATED_SHARE:
            yield generated(chance)
        else:
            body = chance.choice(bodies)
            start = chance.randrange(max(1, len(body) - _MUTATED_BYTES))
            yield mutated(chance, body[start : start + _MUTATED_BYTES])


def compare(name: str, bodies: Iterable[bytes], keep: list[bytes] | None = None) -> int:
    """Read each with both readers; how many differ."""
    count = different = bombs = 0
    for body in bodies:
        source, _ = in_utf8(body[:MAX_HTML_BYTES], None)
        count += 1
        if is_bomb(source):
            bombs += 1
            continue
        if keep is not None:
            keep.append(source)
        if found := differences(source):
            different += 1
            print(f"{name} {count}: {'; '.join(part[:_SHOWN] for part in found)}")
    print(f"{name}: {count:,} pages read, {bombs} bombs, {different} differ", flush=True)
    return different


def cost(name: str, sources: list[bytes]) -> None:
    """CPU of a page, parse included, by each reader: the least of three rounds."""
    for reader, read in (("native", read_document), ("in Python", read_tree)):
        least = math.inf
        for _ in range(3):
            begun = time.process_time()
            for source in sources:
                read(source)
            least = min(least, time.process_time() - begun)
        print(f"{name}, {reader}: {least / max(1, len(sources)) * 1e6:,.0f} µs a page of {len(sources)}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reader_oracle", description=__doc__)
    parser.add_argument("--mutated", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--real-pages", type=Path, default=REAL_PAGES)
    given = parser.parse_args()
    if native.reader is None:
        sys.exit(f"There is one reader only: {native.choice.why}.")
    kept: list[bytes] = []
    with tempfile.TemporaryDirectory(prefix="oracle-") as scratch:
        different = compare("real pages", real_pages(given.real_pages, scratch), kept)
    cost("real pages", kept)
    real = len(kept)
    different += compare("documents", documents(), kept)
    cost("documents", kept[real::10])
    print(f"seed {given.seed}")
    different += compare("mutated pages", variants(kept or [b""], given.mutated, given.seed))
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())

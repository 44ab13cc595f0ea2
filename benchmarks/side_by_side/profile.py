"""Where a page's CPU goes in our crawl: by part of the work, and function by function, in microseconds a page."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

_SHOWN = 12  # functions
# The first that a file's path holds says whose part it is. What a function calls in C is its own.
_PARTS = {
    "rules/page/text_fingerprint.py": "words, near duplicates",
    "simhash/": "words, near duplicates",
    "fingerprints": "words, near duplicates",
    "frontier/learned/duplicates.py": "words, near duplicates",
    "pipelines/dedup.py": "words, near duplicates",
    "numpy/": "words, near duplicates",
    "rules/archive/": "WARC, index, log",
    "stores/archive/": "WARC, index, log",
    "stores/index/": "WARC, index, log",
    "stores/logs/": "WARC, index, log",
    "stores/atomic_files.py": "WARC, index, log",
    "pipelines/warc.py": "WARC, index, log",
    "crawl/page_completion.py": "WARC, index, log",
    "base64.py": "WARC, index, log",
    "rules/page/": "reading the page, its links",
    "rules/url/urls.py": "reading the page, its links",
    "parse/": "reading the page, its links",
    "w3lib/": "reading the page, its links",
    "middlewares/triage.py": "reading the page, its links",
    "spiders/": "reading the page, its links",
    "fetch/": "HTTP",
    "render/handler.py": "HTTP",
    "crawlerproject/": "frontier, politeness, traps",
    "tldextract/": "frontier, politeness, traps",
    "importlib": "start",
    "re/_": "start",
    "dataclasses.py": "start",
    "typing.py": "start",
    "scrapy/": "Scrapy, Twisted, asyncio",
    "twisted/": "Scrapy, Twisted, asyncio",
    "asyncio": "Scrapy, Twisted, asyncio",
    "pydispatch/": "Scrapy, Twisted, asyncio",
    "itemadapter/": "Scrapy, Twisted, asyncio",
    "inspect.py": "Scrapy, Twisted, asyncio",
    "abc": "Scrapy, Twisted, asyncio",
}


def _part(path: str, function: str) -> str:
    if function == "<module>":
        return "start"
    return next((part for piece, part in _PARTS.items() if piece in path), "other")


def table(samples: Path, cpu_seconds: float, pages: int) -> str:
    """Both lists; the samples' shares of the CPU that a run without them took."""
    rows = json.loads(samples.read_text())
    total = sum(own for _, _, own, _ in rows)
    per_sample = cpu_seconds * 1e6 / pages / total
    parts: Counter[str] = Counter()
    for path, function, own, _ in rows:
        parts[_part(path, function)] += own
    lines = [f"{'µs':>8}  part of the work"]
    lines += [f"{count * per_sample:8.0f}  {part}" for part, count in parts.most_common()]
    lines += ["", f"{'own µs':>8} {'with calls':>10}  function"]
    for path, function, own, whole in rows[:_SHOWN]:
        where = "/".join(Path(path).parts[-2:])
        lines.append(f"{own * per_sample:8.1f} {whole * per_sample:10.1f}  {where} {function}")
    return "\n".join(lines) + "\n"

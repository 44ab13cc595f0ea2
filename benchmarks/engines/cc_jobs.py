"""Jobs of the shape of Common Crawl's cc-pyspark (server_count, word_count, wat_extract_links), least of each.

A job reads a list of paths, opens each file with warcio, makes pairs of every record and sums them by key. What a
record gives is a function of its own, which needs no Spark.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from warcio.archiveiterator import ArchiveIterator
from warcio.recordloader import ArcWarcRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Pair = tuple[str, int]
_WORD = re.compile(r"\w+")
_NO_SERVER = "(no server in HTTP header)"


def is_wat(record: ArcWarcRecord) -> bool:
    """Whether it is a record of facts."""
    return bool(record.rec_type == "metadata" and record.content_type == "application/json")


def servers(record: ArcWarcRecord) -> Iterator[Pair]:
    """How many answers each server software gave: of WARC and WAT alike."""
    if is_wat(record):
        payload = json.loads(record.content_stream().read())["Envelope"]["Payload-Metadata"]
        if "HTTP-Response-Metadata" not in payload:
            return
        fields = payload["HTTP-Response-Metadata"]["Headers"].items()
    elif record.rec_type == "response":
        fields = record.http_headers.headers
    else:
        return
    names = {value for name, value in fields if name.lower() == "server" and value}
    yield from ((name, 1) for name in names or {_NO_SERVER})


def words(record: ArcWarcRecord) -> Iterator[Pair]:
    """How often each word is written: of WET."""
    if record.rec_type == "conversion" and record.content_type == "text/plain":
        yield from Counter(_WORD.findall(record.content_stream().read().decode().lower())).items()


def targets(record: ArcWarcRecord) -> Iterator[Pair]:
    """How many links lead to each address: of WAT."""
    if is_wat(record):
        payload = json.loads(record.content_stream().read())["Envelope"]["Payload-Metadata"]
        html = payload.get("HTTP-Response-Metadata", {}).get("HTML-Metadata", {})
        yield from Counter(link["url"] for link in html.get("Links", [])).items()


class Job(NamedTuple):
    """What is read, and what becomes of a record."""

    suffix: str  # of the files
    pairs: Callable[[ArcWarcRecord], Iterator[Pair]]


JOBS = {
    "server_count on WARC": Job(".warc.gz", servers),
    "server_count on WAT": Job(".warc.wat.gz", servers),
    "word_count on WET": Job(".warc.wet.gz", words),
    "wat_extract_links on WAT": Job(".warc.wat.gz", targets),
}


def pairs_of(name: str, paths: Iterable[str]) -> Iterator[Pair]:
    """Of every record of the files: what a task does with its part of the list."""
    for path in paths:
        with Path(path).open("rb") as stream:
            for record in ArchiveIterator(stream):
                yield from JOBS[name].pairs(record)


def summed(pairs: Iterable[Pair]) -> dict[str, int]:
    """Without Spark."""
    total: Counter[str] = Counter()
    for key, value in pairs:
        total[key] += value
    return dict(total)


def on_spark(spark: SparkSession, name: str, files: list[Path]) -> dict[str, int]:
    """The job as it runs on a cluster: a file a task, sums by key."""
    paths = spark.sparkContext.parallelize([str(file) for file in files], len(files))
    rows = paths.mapPartitions(partial(pairs_of, name)).reduceByKey(lambda one, other: one + other)
    return dict(rows.collect())

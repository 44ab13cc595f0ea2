"""Crawl plans (Marginalia's way): which pages of which domains, in an order that spreads the hosts of one server.

A plan is gzip-compressed JSON lines, ``{"id": "…", "domain": "…", "urls": ["…", …]}``, in order of id. Ids are drawn
by chance, once a domain.
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from crawlerproject.errors import OperatorError
from crawlerproject.rules.url.domains import registered_domain
from crawlerproject.rules.url.urls import Address, UrlRefused, parse
from crawlerproject.stores.atomic_files import new_file

_ID_BITS = 64
_MAX_LINE_BYTES = 64 * 1024 * 1024  # of one domain; more is no plan of ours


class Broken(NamedTuple):
    """A line of a plan that cannot be used."""

    number: int  # from 1
    problem: str


def write_plan(addresses: Iterable[Address], path: Path, rng: random.Random) -> tuple[int, int]:
    """Write a plan of these pages, each once; (domains, pages). Written beside, then renamed."""
    domains: dict[str, dict[bytes, str]] = {}
    for address in addresses:
        domains.setdefault(registered_domain(address.host), {}).setdefault(address.key, address.url)
    lines = sorted((f"{rng.getrandbits(_ID_BITS):016x}", domain) for domain in sorted(domains))
    part = path.with_name(path.name + ".part")
    with new_file(part) as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as out:
        for identity, domain in lines:
            urls = list(domains[domain].values())
            out.write(orjson.dumps({"id": identity, "domain": domain, "urls": urls}) + b"\n")
    part.rename(path)
    return len(domains), sum(len(urls) for urls in domains.values())


def read_plan(path: Path) -> Iterator[list[Address] | Broken]:
    """The pages of each line in order; a Broken for a line, or a single address, that cannot be used."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else path.open("rb") as lines:
            number = 0
            while line := lines.readline(_MAX_LINE_BYTES):
                number += 1
                if line.strip():
                    yield from _line(number, line)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        yield Broken(number + 1, f"the file breaks off ({error})")
    except OSError as error:
        raise OperatorError(f"The plan {path} cannot be read ({error.strerror}).") from error


def _line(number: int, line: bytes) -> Iterator[list[Address] | Broken]:
    try:
        plan = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        yield Broken(number, f"not JSON ({error})")
        return
    urls = plan.get("urls") if isinstance(plan, dict) else None
    if not isinstance(urls, list):
        yield Broken(number, "no list of urls")
        return
    addresses = []
    for url in urls:
        try:
            addresses.append(parse(str(url)))
        except UrlRefused as refused:
            yield Broken(number, f"{str(url)[:100]!r} is no address ({refused})")
    yield addresses


def plan_and_depth(plan: str, depth: str) -> tuple[Path, int]:
    """The arguments, checked. Raises OperatorError."""
    if not plan:
        raise OperatorError("There is no plan; make one with scrapy plan and give it with -a plan=FILE.")
    path = Path(plan)
    if not path.is_file():
        raise OperatorError(f"The plan {plan} does not exist; make one with scrapy plan.")
    if not (depth.isascii() and depth.isdigit()):
        raise OperatorError(f"The depth {depth!r} is not a number of links; give 0 or more.")
    return path, int(depth)


def urls_of_sitemap(path: Path) -> list[str]:
    """The pages of a sitemap. Raises OperatorError for a file that is no sitemap."""
    from crawlerproject.rules.feeds.feeds import read_sitemap

    sitemap = read_sitemap(path.read_bytes())
    if sitemap.flaw and not sitemap.entries:
        raise OperatorError(f"{path} is no usable sitemap: {sitemap.flaw}.")
    return [entry.url for entry in sitemap.entries if not entry.is_index]


def urls_of_index(path: Path) -> Iterator[str]:
    """The URLs of an index of captures. Raises OperatorError for an unknown kind or schema."""
    if path.suffix == ".parquet":
        yield from _parquet_urls(path)
        return
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield str(orjson.loads(line[line.index(b"{") :])["url"])
            except (ValueError, KeyError, TypeError):
                raise OperatorError(f"{path}, line {number}, is no line of a CDXJ index.") from None


def _parquet_urls(path: Path) -> Iterator[str]:
    import pyarrow as pa  # a tenth of a second, and Scrapy imports every command at each start
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise OperatorError(f"{path} is no Parquet file ({error}).") from error
    if "url" not in file.schema_arrow.names:
        raise OperatorError(f"{path} is of an unknown schema: it has no column url.")
    for batch in file.iter_batches(columns=["url"]):
        yield from (url for url in batch["url"].to_pylist() if url)

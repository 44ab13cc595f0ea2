"""The order of the Parquet index is the one in which Arrow sorts."""

import random

from crawlerproject.rules.archive.index_rows import CdxjEntry
from crawlerproject.stores.index.parquet_tables import tables_of

HOSTS = ("a.example", "b.example", "a.b.example", "xn--bcher-kva.example", "192.0.2.1")
# UTF-16 would put the last but one before the last but two; bytes and code points do not.
PATHS = ("", "Z", "z", "z?a=1", "z%20b", "é", "～", "\U0001f600", "robots.txt")


def captures(count: int) -> list[CdxjEntry]:
    """Some URLs many times, also within one second; each at an offset of its own, in no order."""
    chance = random.Random(17)
    made = []
    for offset in chance.sample(range(10 * count), count):
        url = f"http://{chance.choice(HOSTS)}/{chance.choice(PATHS)}"
        time = f"20261122{chance.randrange(24):02}{chance.randrange(60):02}0{chance.randrange(2)}"
        made.append(CdxjEntry(offset, offset + 9, url, time, "text/html", "", 200, "3I42H3S6", offset, 9, "", ""))
    return made


def test_the_order_is_that_of_arrow() -> None:
    """By key, time and offset, of bytes and not of UTF-16, in pieces of any number."""
    rows = captures(3000)
    tables = tables_of("x.warc.gz", rows)

    assert tables.keys() == {"warc", "robotstxt"}
    assert sum(table.num_rows for table in tables.values()) == len(rows)
    order = [(name, "ascending") for name in ("url_surtkey", "fetch_time", "warc_record_offset")]
    assert all(table.equals(table.sort_by(order)) for table in tables.values())
    assert all(table["url_surtkey"].num_chunks == 1 for table in tables.values())

"""The order of the Parquet index is the same, whether Python or Arrow sorts."""

import random

import pytest

from crawlerproject.rules.archive.index_rows import CdxjEntry
from crawlerproject.stores.index import parquet_tables
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


@pytest.mark.parametrize("most_here", [1, 7, 100, 499])
def test_arrow_sorts_as_python_does(monkeypatch: pytest.MonkeyPatch, most_here: int) -> None:
    """The whole tables are equal, wherever the border between the two lies."""
    rows = captures(1100)
    by_python = tables_of("x.warc.gz", rows)

    monkeypatch.setattr(parquet_tables, "_MOST_SORTED_HERE", most_here)
    by_arrow = tables_of("x.warc.gz", rows)

    assert by_python.keys() == by_arrow.keys() == {"warc", "robotstxt"}
    assert all(by_python[subset].equals(by_arrow[subset]) for subset in by_python)
    assert [table.num_rows for table in by_python.values()] == [table.num_rows for table in by_arrow.values()]

"""What a list of withdrawals covers, and the tombstones that stand for what was erased."""

from __future__ import annotations

import gzip

import pytest

from crawlerproject.rules.archive.warc_members import TOMBSTONE, Member, walk, wrong_digest
from crawlerproject.rules.archive.withdrawal import State, Withdrawal, Withdrawn, selector, tombstone

_ID = "<urn:uuid:00000000-0000-4000-8000-000000000000>"
_ENTRY = Withdrawal("example.org", "2026-11-28", State.ERASED, "asked by their webmaster")
_DATE = "2026-11-28T03:00:00.000000Z"

LISTED, _ = Withdrawn.parse(
    ["example.org  2026-11-28 erased  # x", "", "# comment", "https://a.test/~anna/*", "http://b.test/x?b=1&a=2"]
)


@pytest.mark.parametrize(
    ("url", "covered"),
    [
        ("http://example.org/", True),
        ("https://www.sub.example.org:8080/x", True),
        ("http://notexample.org/", False),
        ("http://a.test/~anna", True),
        ("https://a.test/~anna/x?y", True),
        ("https://a.test/~annabel", False),
        ("https://b.test/x?a=2&b=1", True),
        ("http://b.test/x", False),
        ("", False),
        ("dns:a.test", False),
        ("metadata://a.test/x", False),
    ],
)
def test_what_is_covered(url: str, covered: bool) -> None:
    """A host with all below it; a URL as an index finds it; all below a URL."""
    assert LISTED.covers(url) is covered


def test_lines_are_read_as_written() -> None:
    """Each state and flag; what says nothing understandable is returned."""
    entries = [
        Withdrawal("a.test", "2026-11-28", state, "why # not", crawled) for state in State for crawled in (False, True)
    ]
    found, problems = Withdrawn.parse(
        [*(entry.line() for entry in entries), "a.test today gone", "%%", "a.test 1 erased x"]
    )
    assert (list(found.entries), problems) == (entries, ["a.test today gone", "%%", "a.test 1 erased x"])
    assert [Withdrawn([entry]).refuses("http://a.test/") for entry in entries[:2]] == [True, False]


def test_no_selector() -> None:
    """Neither a host nor a URL of the web."""
    assert selector("HTTP://A.test") == "http://a.test/"
    for text in ("", "a b", "ftp://a.test/", "http://"):
        with pytest.raises(ValueError):
            selector(text)


@pytest.mark.parametrize("length", [*range(420, 640, 3), 5000, 70_001, 3_000_002])
def test_a_tombstone_of_any_length(length: int) -> None:
    """One good record in one member of just that length, whichever inflater reads it."""
    made = tombstone(length, _ENTRY, _ID, of=_ID, date=_DATE)

    (record,) = walk([made])
    assert isinstance(record, Member)
    assert (len(made), record.kind, wrong_digest(record)) == (length, TOMBSTONE, "")
    assert record.block.startswith(b"erased: 2026-11-28")
    assert gzip.decompress(made).endswith(b"\r\n\r\n")


def test_no_room_for_one() -> None:
    """Shorter than its shortest form."""
    with pytest.raises(ValueError, match="no room in 200 bytes"):
        tombstone(200, _ENTRY, _ID, of="", date=_DATE)

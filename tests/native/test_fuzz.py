"""What the fuzzer has found worth keeping, read by both readers; and what fuzzing itself needs."""

from __future__ import annotations

import re

import pytest

from crawlerproject import native
from crawlerproject.rules.page.body import has_foreign_option, in_utf8, is_bomb
from tests.native.pages import differences
from tests.web.running import PROJECT

FUZZ = PROJECT / "tests" / "native" / "fuzz"
CORPUS = sorted((FUZZ / "corpus").iterdir())
MOST_BYTES = 1_000_000
"""Of the kept corpus: it lies in the repository."""


@pytest.mark.skipif(native.reader is None, reason=f"one reader only: {native.choice.why}")
def test_both_readers_read_the_kept_corpus_alike() -> None:
    """As bytes of UTF-8, and as a page without a charset is read; but for what breaks the parser in Python."""
    different = {}
    for path in CORPUS:
        body = path.read_bytes()
        for source in (body, in_utf8(body, "text/html")[0]):
            if not is_bomb(source) and not has_foreign_option(source) and (found := differences(source)):
                different[path.name] = found

    assert different == {}


@pytest.mark.skipif(native.reader is None, reason=f"one reader only: {native.choice.why}")
def test_the_native_reader_survives_all_of_it() -> None:
    """Twice each, since a parser is kept from page to page: the second time says the same."""
    page = native.reader
    assert page is not None

    bodies = [body for path in CORPUS if not is_bomb(body := path.read_bytes())]

    assert [page.read(body) for body in bodies] == [page.read(body) for body in bodies]


def test_the_corpus_is_small_and_there() -> None:
    """A page or more for each kind of thing that is read."""
    assert len(CORPUS) >= 14
    assert sum(path.stat().st_size for path in CORPUS) <= MOST_BYTES


def test_the_dictionary_is_one_that_the_fuzzer_reads() -> None:
    """A line is a comment or a text in quotes, with backslashes for bytes and quotes only."""
    entry = re.compile(r'"(?:[^"\\]|\\x[0-9a-f]{2}|\\")+"')
    lines = (FUZZ / "html.dict").read_text("ascii").splitlines()

    assert [line for line in lines if not line.startswith("#") and not entry.fullmatch(line)] == []
    assert len(lines) > 300

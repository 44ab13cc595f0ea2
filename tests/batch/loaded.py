"""A full-text index of processed pages."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from crawlerproject.batch.fulltext import Loading


def load(pages: Path, index_folder: Path) -> int:
    """Load every file of ``pages`` that the journal does not name; how many pages."""
    with closing(Loading(pages, index_folder)) as index:
        return sum(map(index.take, index.waiting()))

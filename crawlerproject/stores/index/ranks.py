"""The ranks that ``scrapy rank`` wrote, as a crawl asks for them: 12 to 16 bytes a page in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from xxhash import xxh3_64_intdigest

_BATCH_ROWS = 65_536


class Rank(NamedTuple):
    """The rank of one page."""

    weight: float  # 1 on average
    less_important: float  # share of the pages that rank lower


class Ranks:
    """Looks pages up by URL."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq  # a tenth of a second that only a crawl with ranks spends

        ids, weights, shares = [], [], []
        for batch in pq.ParquetFile(path).iter_batches(_BATCH_ROWS, columns=["url", "weight", "less_important"]):
            ids.append(np.fromiter((_id(url) for url in batch["url"].to_pylist()), np.uint64))
            weights.append(batch["weight"].to_numpy().astype(np.float32))
            shares.append(batch["less_important"].to_numpy().astype(np.float32))
        self._ids = np.concatenate(ids) if ids else np.zeros(0, np.uint64)
        order = np.argsort(self._ids)
        self._ids = self._ids[order]
        self._weights = np.concatenate(weights)[order] if weights else np.zeros(0, np.float32)
        self._shares = np.concatenate(shares)[order] if shares else np.zeros(0, np.float32)

    def of(self, url: str) -> Rank | None:
        """A page's rank; None when it was not ranked."""
        place = _place(self._ids, url)
        return None if place is None else Rank(float(self._weights[place]), float(self._shares[place]))


class Linked:
    """How much of all that is linked, fetched or not, ranks below a URL."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        table = pq.read_table(path, columns=["id", "less_important"])  # in order of id
        self._ids = table["id"].to_numpy()
        self._shares = table["less_important"].to_numpy()

    def less_important(self, url: str) -> float | None:
        """The share; None when nothing linked there at the time of the rank."""
        place = _place(self._ids, url)
        return None if place is None else float(self._shares[place])


def _id(url: str) -> int:
    return xxh3_64_intdigest(url.encode("utf-8", "surrogatepass"))


def _place(ids: np.ndarray[Any, np.dtype[np.uint64]], url: str) -> int | None:
    """Where a URL's id stands among sorted ones."""
    wanted = np.uint64(_id(url))
    place = int(np.searchsorted(ids, wanted))
    return place if place < len(ids) and ids[place] == wanted else None

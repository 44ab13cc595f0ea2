"""Which worker this is, kept in its folder: the incarnations that Redis may know, and what Redis has answered for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from crawlerproject.stores.atomic_files import SECRET_FILE, replace_file
from crawlerproject.stores.redis.forgetting import Answered

_INCARNATIONS = ("life", "before")
_NOTHING = (("crawl_id", ""), ("serial", 0), ("reports", 0))


class Identity:
    """One file; who has it may take the worker's name over. Raises StorageError when it cannot be written."""

    def __init__(self, path: Path, crawl: str, worker: str) -> None:
        self._path = path
        self._names = {"worker": worker, "crawl": crawl}
        self._facts: dict[str, Any] = orjson.loads(path.read_bytes()) if path.exists() else {}
        if any(self._facts.get(name) != value for name, value in self._names.items()):  # what another crawl's answered
            self._facts = {name: value for name, value in self._facts.items() if name in _INCARNATIONS}

    def incarnations(self) -> list[str]:
        """Those that Redis may know, the latest first."""
        return [self._facts["life"], *self._facts.get("before", ())] if "life" in self._facts else []

    def remember(self, incarnations: list[str]) -> None:
        """These and no others, the latest first."""
        self._write(life=(incarnations or [""])[0], before=incarnations[1:])

    def answered(self) -> Answered:
        """What Redis has answered for to this worker of this crawl."""
        began = "worker" in self._facts and bool(self._facts.get("life"))
        crawl_id, serial, reports = (self._facts.get(name, none) for name, none in _NOTHING)
        return Answered(crawl_id, serial, reports, began)

    def answered_for(self, answered: Answered) -> None:
        """From now on Redis must know as much."""
        self._write(crawl_id=answered.crawl_id, serial=answered.serial, reports=answered.reports)

    def _write(self, **facts: Any) -> None:
        self._facts = {**self._facts, **self._names, **facts}
        replace_file(self._path, orjson.dumps(self._facts), SECRET_FILE)

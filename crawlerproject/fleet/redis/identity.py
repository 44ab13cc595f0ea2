"""Which incarnations of a worker Redis may know: kept in the worker's folder, so that its next start is not refused."""

from __future__ import annotations

from pathlib import Path

import orjson

from crawlerproject.stores.atomic_files import SECRET_FILE, replace_file


class Identity:
    """One file; who has it may take the worker's name over."""

    def __init__(self, path: Path, crawl: str, worker: str) -> None:
        self._path = path
        self._names = {"worker": worker, "crawl": crawl}

    def incarnations(self) -> list[str]:
        """Those that Redis may know, the latest first."""
        if not self._path.exists():
            return []
        known = orjson.loads(self._path.read_bytes())
        return [known["life"], *known.get("before", ())]

    def remember(self, incarnations: list[str]) -> None:
        """These and no others, the latest first. Raises OSError."""
        life = (incarnations or [""])[0]
        replace_file(self._path, orjson.dumps({**self._names, "life": life, "before": incarnations[1:]}), SECRET_FILE)

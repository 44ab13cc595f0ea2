"""The last lines of the request log, read from its end: a bounded look, however long the log is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson

# Looked through from the end (ours): some 30,000 attempts, a tenth of a second.
TAIL_BYTES = 16 * 1024 * 1024


def last_of_host(folder: Path, host: str, most: int, tail_bytes: int = TAIL_BYTES) -> list[dict[str, Any]]:
    """The last attempts at a host (its key) among the last ``tail_bytes`` of today's lines, oldest first.

    What is older is in compressed days: ``stores/logs/log_query.py`` asks those.
    """
    wanted = orjson.dumps({"host": host})[1:-1]  # as it stands in a line
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob("requests-*.jsonl"), reverse=True):
        for line in reversed(_tail(path, tail_bytes).split(b"\n")):
            if wanted in line and (row := _row(line)) is not None and row.get("host") == host:
                found.append(row)
                if len(found) == most:
                    return found[::-1]
        tail_bytes -= path.stat().st_size
        if tail_bytes <= 0:
            break
    return found[::-1]


def _tail(path: Path, most: int) -> bytes:
    """The last bytes of a file; its first line may be cut."""
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:  # cut, or half written just now
        return None
    return row if isinstance(row, dict) else None

"""The digests by which the other side is believed, of one reading of a file."""

from __future__ import annotations

import os
from hashlib import md5, sha256
from pathlib import Path

from crawlerproject.rules.archive.uploads import Here, Measured, part_bytes

CHUNK_BYTES = 1024 * 1024


def here(path: Path) -> Here | None:
    """A file as it lies in its folder; None when it does not, or is a link."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return None
    return Here(found.st_size, found.st_mtime_ns) if os.path.isfile(path) and not os.path.islink(path) else None


def measured(path: Path) -> Measured:
    """Size and digests, some six seconds a gigabyte. Raises OSError."""
    whole, content, size = md5(usedforsecurity=False), sha256(), 0
    step = part_bytes(path.stat().st_size)
    parts, part, left = [], md5(usedforsecurity=False), step
    with path.open("rb") as file:
        while chunk := file.read(min(CHUNK_BYTES, left)):
            size += len(chunk)
            left -= len(chunk)
            for digest in (whole, content, part):
                digest.update(chunk)
            if not left:
                parts.append(part.digest())
                part, left = md5(usedforsecurity=False), step
    if size <= step:
        return Measured(size, content.hexdigest(), whole.hexdigest(), whole.hexdigest())
    if left < step:
        parts.append(part.digest())
    etag = f"{md5(b''.join(parts), usedforsecurity=False).hexdigest()}-{len(parts)}"
    return Measured(size, content.hexdigest(), whole.hexdigest(), etag)

"""The lines of many indexes in one order, with few descriptors."""

from __future__ import annotations

import os
import random
from pathlib import Path

from crawlerproject.stores.index.cdxj import merged_lines

_FILES = 40


def test_many_files_are_one_in_order(tmp_path: Path) -> None:
    """Lines of any length, empty files, lines that several have; meanwhile no file stays open."""
    chance = random.Random(26)
    paths, wanted = [], []
    for number in range(_FILES):
        lines = sorted(
            b"%b %d\n" % (chance.randbytes(4).hex().encode() * chance.choice((1, 40, 4000)), number)
            for _ in range(chance.choice((0, 1, 30)))
        )
        lines.append(b"~ in all\n")
        paths.append(tmp_path / f"{number}.cdxj")
        paths[-1].write_bytes(b"".join(lines))
        wanted += lines
    (tmp_path / "none.cdxj").touch()
    opened = len(os.listdir("/proc/self/fd"))

    found = merged_lines([*paths, tmp_path / "none.cdxj"])
    first = next(found)

    assert len(os.listdir("/proc/self/fd")) == opened
    assert [first, *found] == sorted(wanted)

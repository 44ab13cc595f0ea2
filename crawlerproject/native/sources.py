"""What the extension is built from, and the digest by which a build of other sources is known."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

MODULE = "_page"
SUFFIX = ".so"
"""The end of an extension's name; before it stands the tag of the Python that it was built for."""
ENTRY = "module.c"
# Beside the C sources: what sets the flags, and which lexbor it is.
_ALSO = ("build.py", "lexbor/VERSION")


def compiled(folder: Path) -> list[Path]:
    """What the compiler is given: our files, and lexbor in its units."""
    return [*sorted(folder.glob("*.c")), *sorted((folder / "lexbor").glob("unit_*.c"))]


def every(folder: Path) -> list[Path]:
    """All that a build needs, for a source distribution."""
    return sorted([*(path for path in folder.rglob("*") if path.suffix in {".c", ".h"}), folder / "lexbor" / "VERSION"])


def digest(folder: Path) -> str:
    """Of our sources, 16 hexadecimal digits; empty where they are not, as in an installed package.

    Lexbor itself is known by its version: a start need not read two megabytes.
    """
    ours = sorted([*folder.glob("*.c"), *folder.glob("*.h")])
    if not ours:
        return ""
    found = sha256()
    for path in [*ours, *(folder / name for name in _ALSO)]:
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]

"""Make crawlerproject/native/lexbor anew: what HTML parsing needs of lexbor, as selectolax has it.

``python scripts/vendor_lexbor.py selectolax-1.0.2.tar.gz`` takes the file that ``pip download --no-deps --no-binary
:all: selectolax==1.0.2`` leaves. Both readers must parse alike, so it is the version that requirements.txt pins, and
nothing in it is changed but what PATCHES names.
"""

from __future__ import annotations

import re
import shutil
import sys
import tarfile
from hashlib import sha256
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "crawlerproject" / "native" / "lexbor"
ABOUT = "VERSION"
MODULES = ("core", "dom", "html", "ns", "tag")
PORTS = ("ports/posix/lexbor/core/memory.c",)
# What nothing that a parse calls needs: found by following the symbols of lxb_html_document_create and _parse.
LEFT_OUT = frozenset(
    {
        "core/avl.c", "core/bst_map.c", "core/in.c", "core/plog.c", "core/print.c", "core/serialize.c", "core/utils.c",
        "dom/collection.c", "dom/exception.c", "dom/interfaces/event_target.c", "dom/interfaces/shadow_root.c",
        "html/encoding.c", "html/interfaces/media_element.c", "html/interfaces/window.c", "html/node.c",
        "html/serialize.c", "html/serialize_ext.c", "html/tree/template_insertion.c",
    }
)  # fmt: skip
# Compiled instead of 140 files that all include the same headers: three seconds for all. A file goes
# to the first whose prefix it has.
UNITS = {"unit_tokenizer.c": "html/tokenizer/", "unit_html.c": "html/", "unit_core.c": ""}
# Lexbor's errors with memory, found by tests/native/fuzz: a file, what stands there, what is put in its place. No tree
# may change by it. Selectolax has them until a version without them is pinned: then an entry no longer fits, and goes.
PATCHES = (
    # <svg><option selected>: an element of SVG has no room for an option's state, and the byte behind it was written.
    (
        "html/interfaces/option_element.c",
        b"    if (name == LXB_DOM_ATTR_SELECTED) {\n",
        b"    if (name == LXB_DOM_ATTR_SELECTED && element->node.ns == LXB_NS_HTML) {\n",
    ),
)
# What a file of ours may include besides.
HEADERS = ("html/html.h", "dom/dom.h")
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)
_VERSION = re.compile(rb"#define LEXBOR_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)")


def main(arguments: list[str]) -> int:
    """Replace the folder."""
    if len(arguments) != 1:
        print("Usage: python scripts/vendor_lexbor.py selectolax-VERSION.tar.gz", file=sys.stderr)
        return 2
    archive = Path(arguments[0])
    sources, notices = read_archive(archive)
    patch(sources)
    kept = needed(sources)
    version = ".".join(part.decode() for part in _VERSION.findall(sources["core/base.h"]))
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name in sorted(kept):
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(sources[name])
    for name, text in (notices | units(kept)).items():
        (FOLDER / name).write_bytes(text)
    (FOLDER / ABOUT).write_text(about(version, archive.name.removesuffix(".tar.gz")) + f"{digest(FOLDER)}\n")
    print(f"lexbor {version}: {len(kept)} files, {sum(len(sources[name]) for name in kept):,} bytes in {FOLDER}")
    return 0


def read_archive(archive: Path) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Lexbor's sources by their path below ``lexbor/``, and its licence and notice."""
    sources, notices = {}, {}
    with tarfile.open(archive) as opened:
        for member in opened:
            _, _, path = member.name.partition("/lexbor/")
            if not member.isfile() or not path or (file := opened.extractfile(member)) is None:
                continue
            if path in ("LICENSE", "NOTICE"):
                notices[path] = file.read()
            elif path.startswith("source/lexbor/"):
                sources[path.removeprefix("source/lexbor/")] = file.read()
    return sources, notices


def patch(sources: dict[str, bytes]) -> None:
    """Apply PATCHES. ValueError where one does not fit."""
    for name, before, after in PATCHES:
        if before not in sources[name]:
            raise ValueError(f"{name} has no {before!r}: look whether the patch is still needed")
        sources[name] = sources[name].replace(before, after)


def needed(sources: dict[str, bytes]) -> set[str]:
    """The files that are compiled, and each header that one of them includes."""
    compiled = {
        name
        for name in sources
        if name.endswith(".c") and name not in LEFT_OUT and (name.split("/")[0] in MODULES or name in PORTS)
    }
    kept: set[str] = set()
    todo = [*compiled, *HEADERS]
    while todo:
        name = todo.pop()
        if name not in kept:
            kept.add(name)
            todo += [included(name, path.decode()) for path in _INCLUDE.findall(sources[name])]
    return kept


def units(kept: set[str]) -> dict[str, bytes]:
    """The text of each of UNITS."""
    lines: dict[str, list[str]] = {unit: [] for unit in UNITS}
    for name in sorted(kept):
        if name.endswith(".c"):
            unit = next(unit for unit, prefix in UNITS.items() if name.startswith(prefix))
            lines[unit].append(f'#include "lexbor/{name}"\n')
    return {unit: "".join(found).encode() for unit, found in lines.items()}


def digest(folder: Path) -> str:
    """Of all that is compiled, so that a build of another text is known, and a change by hand is found."""
    found = sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in {".c", ".h"}):
        found.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def included(by: str, path: str) -> str:
    """The name of what a file includes: all but one of them say it from ``lexbor/`` on."""
    return path.removeprefix("lexbor/") if path.startswith("lexbor/") else str(PurePosixPath(by).parent / path)


def about(version: str, archive: str) -> str:
    """What the folder says about itself; tests/native/test_lexbor.py reads it."""
    return (
        f"lexbor {version}, as in the source distribution of {archive}: what HTML parsing needs,\n"
        "unchanged but for the corrections that scripts/vendor_lexbor.py lists (PATCHES), which makes this folder.\n"
        "https://github.com/lexbor/lexbor, https://github.com/rushter/selectolax\n"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

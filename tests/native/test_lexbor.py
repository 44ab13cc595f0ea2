"""The lexbor that is compiled in: the one that selectolax has, whole, and under its licence."""

import re

from crawlerproject.native.sources import compiled
from tests.scripts.loading import loaded
from tests.web.running import PROJECT

NATIVE = PROJECT / "crawlerproject" / "native"
LEXBOR = NATIVE / "lexbor"


def test_it_is_the_version_of_the_python_reader() -> None:
    """Both readers must parse alike: with another selectolax, scripts/vendor_lexbor.py is run again."""
    pinned = re.search(r"^selectolax==(\S+)$", (PROJECT / "requirements.txt").read_text(), re.MULTILINE)
    header = (LEXBOR / "core" / "base.h").read_text()
    version = ".".join(re.findall(r"#define LEXBOR_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))

    assert pinned is not None
    assert f"lexbor {version}, as in the source distribution of selectolax-{pinned[1]}:" in (
        (LEXBOR / "VERSION").read_text()
    )


def test_each_file_is_compiled_or_included() -> None:
    """Nothing lies there for nothing, and nothing is missing."""
    reached = {NATIVE / "lexbor" / name for name in ("html/html.h", "dom/dom.h")}
    todo = [path for path in compiled(NATIVE) if path.parent == LEXBOR] + list(reached)
    while todo:
        path = todo.pop()
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
            found = NATIVE / name if name.startswith("lexbor/") else path.parent / name
            if found not in reached:
                reached.add(found)
                todo.append(found)
    units = {path for path in compiled(NATIVE) if path.parent == LEXBOR}

    assert {path for path in LEXBOR.rglob("*") if path.suffix in {".c", ".h"}} - units == reached


def test_nothing_is_changed_by_hand() -> None:
    """The script's digest fits; each correction of its table is in, wherever the wrong text stood."""
    script = loaded("vendor_lexbor")

    assert (LEXBOR / "VERSION").read_text().splitlines()[-1] == script.digest(LEXBOR)
    for name, before, after in script.PATCHES:
        assert before not in (LEXBOR / name).read_bytes()
        assert after in (LEXBOR / name).read_bytes()


def test_its_licence_lies_beside_it() -> None:
    """Apache 2.0 wants its text and the notice to go along."""
    assert "Apache License" in (LEXBOR / "LICENSE").read_text()
    assert "Alexander Borisov" in (LEXBOR / "NOTICE").read_text()

"""The lexbor that is compiled in: the one that selectolax has, fetched by hash, corrected, under its licence."""

from __future__ import annotations

import io
import json
import re
import tarfile
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

import pytest

from crawlerproject import native
from crawlerproject.native.build import LEXBOR, compiler, headers, lexbor_version
from tests.native.copies import NATIVE, asked, copy_of_the_room, make
from tests.web.running import PROJECT

needs_compiler = pytest.mark.skipif(not (compiler() and headers()), reason="there is no C compiler")
needs_lexbor = pytest.mark.skipif(not LEXBOR.is_dir(), reason="lexbor has not been fetched")

# A source distribution that pip reads with nothing else at hand.
BACKEND = """
import os, tools

def prepare_metadata_for_build_wheel(folder, settings=None):
    os.mkdir(os.path.join(folder, "selectolax-9.0.dist-info"))
    with open(os.path.join(folder, "selectolax-9.0.dist-info", "METADATA"), "w") as file:
        file.write("Metadata-Version: 2.1\\nName: selectolax\\nVersion: 9.0\\n")
    return "selectolax-9.0.dist-info"
"""
SOURCES = {
    "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    "backend.py": BACKEND,
    "lexbor/LICENSE": "Apache License",
    "lexbor/NOTICE": "Alexander Borisov",
    "lexbor/source/lexbor/core/base.h": "#define ANSWER 41\nint answer(void);\n",
    "lexbor/source/lexbor/core/base.c": '#include "lexbor/core/base.h"\nint answer(void)\n{\n    return ANSWER;\n}\n',
    "lexbor/source/lexbor/html/parse.c": "int parse(void) { return 0; }\n",
    "lexbor/source/lexbor/encoding/big.c": "#error not needed\n",
}
PATCH = """Why.

--- a/lexbor/core/base.h
+++ b/lexbor/core/base.h
@@ -1 +1 @@
-#define ANSWER 41
+#define ANSWER 42
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Without lexbor, but with a folder of packages in which its lock finds one."""
    folder = copy_of_the_room(tmp_path / "project")
    (folder / "build" / "lexbor" / "made-of").unlink()
    (folder / "build" / "lexbor" / "old.c").touch()
    packages = tmp_path / "packages"
    packages.mkdir()
    with tarfile.open(packages / "selectolax-9.0.tar.gz", "w:gz") as archive:
        for name, text in SOURCES.items():
            member = tarfile.TarInfo(f"selectolax-9.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    with ZipFile(packages / "tools-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tools.py", "")
        wheel.writestr("tools-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tools\nVersion: 1\n")
        wheel.writestr("tools-1.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tools-1.dist-info/RECORD", "")
    (folder / "deploy").mkdir()
    (folder / "deploy" / "build.lock").write_text(f"tools==1 {hashed(packages / 'tools-1-py3-none-any.whl')}\n")
    lock = f"selectolax==9.0 \\\n    {hashed(packages / 'selectolax-9.0.tar.gz')}\n"
    (folder / "requirements.lock").write_text(f"rich==1 \\\n    --hash=sha256:0\n{lock}surt==1\n")
    (folder / NATIVE / "lexbor.patch").write_text(PATCH)
    return folder


def hashed(path: Path) -> str:
    """As a lock file has it."""
    return f"--hash=sha256:{sha256(path.read_bytes()).hexdigest()}"


def of(project: Path) -> dict[str, str]:
    """Where pip looks for packages."""
    return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(project.parent / "packages"), "PIP_CONFIG_FILE": "/dev/null"}


@needs_compiler
def test_it_is_fetched_once(project: Path) -> None:
    """What HTML parsing needs of it, corrected; a later build needs no packages."""
    first = make(project, **of(project))
    lexbor = project / "build" / "lexbor"
    fetched = {str(path.relative_to(lexbor)) for path in lexbor.rglob("*") if path.is_file()}
    source = project / NATIVE / "module.c"
    source.write_text(source.read_text() + "/* changed */\n")
    second = make(project, PIP_NO_INDEX="1", PIP_CONFIG_FILE="/dev/null")

    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == "Fetching lexbor and building the native page reader (seconds, the first time only)\n"
    units = {"unit_core.c", "unit_html.c", "unit_tokenizer.c"}
    assert fetched == units | {
        "LICENSE", "NOTICE", "made-of", "lexbor/core/base.h", "lexbor/core/base.c", "lexbor/html/parse.c",
    }  # fmt: skip
    assert (lexbor / "unit_core.c").read_text() == '#include "lexbor/core/base.c"\n'
    assert (lexbor / "lexbor" / "core" / "base.h").read_text() == "#define ANSWER 42\nint answer(void);\n"
    assert (second.stdout[:8], second.stderr) == ("Building", "")
    assert asked(project) == ("native True", "")


@needs_compiler
@pytest.mark.parametrize("broken", ["no index", "other bytes", "a correction that does not fit"])
def test_what_cannot_be_fetched_costs_one_line(project: Path, broken: str) -> None:
    """The log has pip's words; pages are read in Python, and nothing of a half is left."""
    packages = project.parent / "packages"
    if broken == "no index":
        (packages / "selectolax-9.0.tar.gz").unlink()
    elif broken == "other bytes":
        with (packages / "selectolax-9.0.tar.gz").open("ab") as file:
            file.write(b"more")
    else:
        (project / NATIVE / "lexbor.patch").write_text(PATCH.replace("ANSWER 41", "ANSWER 40"))

    made = make(project, **of(project))

    assert (made.returncode, made.stderr.count("\n")) == (0, 1)
    assert "lacks lexbor, which could not be fetched (see build/native.log): pages are read in Python" in made.stderr
    said = {"no index": "No matching distribution", "other bytes": "HASHES", "a correction that does not fit": "base.h"}
    assert said[broken] in (project / "build" / "native.log").read_text()
    assert sorted(path.name for path in (project / "build").iterdir()) == ["lexbor", "native.log"]
    assert asked(project) == ("Python (the native reader has not been built) False", "")


def test_it_is_the_one_of_the_python_reader() -> None:
    """Both readers must parse alike: the pin is the same, and the lock has the hashes of more than wheels."""
    pinned = re.search(r"^selectolax==(\S+)$", (PROJECT / "requirements.txt").read_text(), re.MULTILINE)

    assert pinned is not None
    assert native.lexbor_pin().startswith(f"selectolax=={pinned[1]} \\\n    --hash=sha256:".encode())
    assert native.lexbor_pin().count(b"\n") == native.lexbor_pin().count(b"--hash") > 1


@needs_lexbor
def test_its_version_is_in_the_bill_of_materials() -> None:
    """docs/sbom.cdx.json names what a wheel holds."""
    bill = json.loads((PROJECT / "docs" / "sbom.cdx.json").read_text())

    assert [one["version"] for one in bill["components"] if one["name"] == "lexbor"] == [lexbor_version()]


@needs_lexbor
def test_the_corrections_are_in_and_its_licence_lies_beside_it() -> None:
    """Apache 2.0 wants its text and the notice to go along."""
    patch = native.PATCH.read_text()
    (name,) = re.findall(r"^\+\+\+ b/(.*)$", patch, re.MULTILINE)
    source = (LEXBOR / name).read_text()

    assert [line for line in re.findall(r"^\+(?!\+\+)(.*)$", patch, re.MULTILINE) if line not in source] == []
    assert "Apache License" in (LEXBOR / "LICENSE").read_text()
    assert "Alexander Borisov" in (LEXBOR / "NOTICE").read_text()

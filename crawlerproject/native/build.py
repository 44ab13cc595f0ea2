"""Builds the extension with the machine's C compiler, for ``make`` and for ``setup.py``.

Two things go into it: our C files, and lexbor, which parses. Lexbor is not in the repository. It comes with the source
distribution of selectolax, by the pin and the hashes of requirements.lock, so that the readers in C and in Python
parse with the same one; lexbor.patch corrects it, and ``build/lexbor`` keeps it for later builds.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from crawlerproject.native import HERE, MODULE, PATCH, SUFFIX, digest, lexbor_pin

ROOT = HERE.parents[1]
LEXBOR = ROOT / "build" / "lexbor"
TOOLS_LOCK = ROOT / "deploy" / "build.lock"  # pip has setuptools read a source distribution
NOTICES = ("LICENSE", "NOTICE")  # what Apache-2.0 wants beside a copy of lexbor, compiled or not
MADE_OF = "made-of"
# All that HTML parsing needs of lexbor, and more: the linker leaves out what nothing calls.
_MODULES = re.compile(r"lexbor/(?:(?:core|dom|html|ns|tag)/.*|ports/posix/lexbor/core/memory)\.[ch]")
# Compiled instead of 160 files that all include the same headers. A file goes to the first whose prefix it has.
UNITS = {"unit_tokenizer.c": "lexbor/html/tokenizer/", "unit_html.c": "lexbor/html/", "unit_core.c": "lexbor/"}
_PIP = ("--no-deps", "--require-hashes", "--retries", "2", "-qq", "--disable-pip-version-check")

COMPILERS = ("cc", "gcc", "clang")
# Hidden: selectolax has a lexbor of its own in the same process, and neither may be given the other's functions.
# Hardened as Debian's own packages are: the pages are anybody's.
FLAGS = (
    *("-O3", "-g0", "-std=gnu11", "-fPIC", "-pthread", "-DNDEBUG", "-DLEXBOR_STATIC", "-fvisibility=hidden"),
    *("-ffunction-sections", "-fdata-sections", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"),
)
WARNINGS = ("-Wall", "-Wextra")  # for our own files
LINK = ("-shared", "-pthread", "-Wl,--gc-sections", "-Wl,-z,relro,-z,now")
_SECONDS = 300.0  # a file takes three; a machine that is very busy gets a hundred times that


class NotBuilt(Exception):
    """Lexbor's sources, the compiler or the linker failed; the message is what that program printed."""


class NotFetched(NotBuilt):
    """There are no sources of lexbor."""


def own_sources() -> list[Path]:
    """The C files in the repository."""
    return sorted(HERE.glob("*.c"))


def build_inputs() -> list[Path]:
    """What a source distribution holds for a build besides the package."""
    return [*own_sources(), *sorted(HERE.glob("*.h")), PATCH, ROOT / "requirements.lock", TOOLS_LOCK]


def lexbor_units() -> list[Path]:
    """Lexbor's files for the compiler, with LEXBOR on the include path. Raises NotFetched."""
    if not has_lexbor():
        LEXBOR.parent.mkdir(exist_ok=True)
        with TemporaryDirectory(prefix=".lexbor-", dir=LEXBOR.parent) as scratch:
            _unpack(_download(Path(scratch)), Path(scratch, "lexbor"))
            shutil.rmtree(LEXBOR, ignore_errors=True)
            os.replace(Path(scratch, "lexbor"), LEXBOR)
    return [LEXBOR / name for name in UNITS]


def has_lexbor() -> bool:
    """Whether the sources are there, of the present pin and with the present corrections."""
    stamp = LEXBOR / MADE_OF
    return stamp.is_file() and stamp.read_text() == made_of()


def lexbor_version() -> str:
    """Of the unpacked sources: ``3.1.0``."""
    header = (LEXBOR / "lexbor" / "core" / "base.h").read_text()
    return ".".join(re.findall(r"#define LEXBOR_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))


def made_of() -> str:
    """What LEXBOR has to be made of now, as a digest."""
    recipe = f"{_MODULES.pattern} {UNITS}".encode()
    return sha256(b"\0".join((lexbor_pin(), PATCH.read_bytes(), recipe))).hexdigest()


def _download(scratch: Path) -> Path:
    """The source distribution. Its setup.py is run for its metadata, with setuptools at hand and nothing else."""
    lock, tools = scratch / "selectolax.lock", scratch / "tools"
    lock.write_bytes(lexbor_pin())
    pip = [sys.executable, "-m", "pip"]
    path = os.pathsep.join(filter(None, (str(tools), os.environ.get("PYTHONPATH"))))
    try:
        _run([*pip, "install", *_PIP, "--only-binary", ":all:", "--target", str(tools), "-r", str(TOOLS_LOCK)])
        source_only = ("--no-binary", ":all:", "--no-build-isolation")
        _run([*pip, "download", *_PIP, *source_only, "-d", str(scratch), "-r", str(lock)], PYTHONPATH=path)
        (archive,) = scratch.glob("*.tar.gz")
    except (NotBuilt, ValueError) as error:
        raise NotFetched(f"The source distribution of selectolax cannot be fetched: {error}") from error
    return archive


def _unpack(archive: Path, folder: Path) -> None:
    """Lexbor's files, corrected, with its notices and our units of compilation. Raises NotFetched."""
    texts: dict[str, bytes] = {}
    with tarfile.open(archive) as opened:
        for member in opened:
            name = member.name.partition("/lexbor/")[2].removeprefix("source/")
            if (name in NOTICES or _MODULES.fullmatch(name)) and (file := opened.extractfile(member)) is not None:
                texts[name] = file.read()
    _correct(texts)
    files = sorted(name for name in texts if name.endswith(".c"))
    texts |= dict.fromkeys(UNITS, b"")
    for name in files:
        unit = next(unit for unit, prefix in UNITS.items() if name.startswith(prefix))
        texts[unit] += f'#include "{name}"\n'.encode()
    for name, text in (texts | {MADE_OF: made_of().encode()}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)


def _correct(texts: dict[str, bytes]) -> None:
    """Apply lexbor.patch; each of its hunks must fit at exactly one place. Raises NotFetched."""
    _, *files = re.split(rb"^--- .*\n\+\+\+ b/(.*)\n", PATCH.read_bytes(), flags=re.MULTILINE)
    for name, hunks in zip(map(bytes.decode, files[::2]), files[1::2], strict=True):
        for hunk in re.split(rb"^@@.*\n", hunks, flags=re.MULTILINE)[1:]:
            lines = hunk.splitlines(keepends=True)
            before, after = (b"".join(line[1:] for line in lines if line[:1] in kinds) for kinds in (b" -", b" +"))
            if texts.get(name, b"").count(before) != 1:
                raise NotFetched(f"{PATCH.name} does not fit {name}: is it still needed?")
            texts[name] = texts[name].replace(before, after)


def compiler() -> str:
    """The program to compile with; empty without one. CC in the environment names another."""
    named = shlex.split(os.environ.get("CC", ""))[:1]
    return next((found for name in (*named, *COMPILERS) if (found := shutil.which(name))), "")


def headers() -> Path | None:
    """The folder with this Python's C headers, if they are installed."""
    paths = sysconfig.get_paths()
    found = (Path(paths[name]) for name in ("include", "platinclude"))
    return next((folder for folder in found if (folder / "Python.h").is_file()), None)


def file_name() -> str:
    """The extension's: ``_page.cpython-311-x86_64-linux-gnu.so``."""
    return MODULE + str(sysconfig.get_config_var("EXT_SUFFIX") or SUFFIX)


def build(target: Path) -> None:
    """Compile to ``target``, which is replaced in one step. CFLAGS come last, and so overrule ours. Raises NotBuilt."""
    program, include = compiler(), headers()
    if not program or include is None:
        raise NotBuilt("there is no C compiler" if not program else "Python's C headers are missing")
    ours = own_sources()
    sources = [*ours, *lexbor_units()]
    flags = [*FLAGS, f"-I{HERE}", f"-I{LEXBOR}", f"-I{include}", f'-DCRAWLER_SOURCES="{digest()}"']
    flags += shlex.split(os.environ.get("CFLAGS", ""))
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target: only within one file system is a rename one step.
    with TemporaryDirectory(prefix=".build-", dir=target.parent) as made, ThreadPoolExecutor(os.cpu_count()) as pool:

        def compile_one(source: Path) -> str:
            compiled = str(Path(made) / f"{source.stem}.o")
            _run([program, *flags, *(WARNINGS if source in ours else ("-w",)), "-c", str(source), "-o", compiled])
            return compiled

        objects = list(pool.map(compile_one, sources))
        library = Path(made) / target.name
        _run([program, *LINK, *objects, "-lm", "-o", str(library)])
        os.replace(library, target)


def _run(command: Sequence[str], **environment: str) -> None:
    try:
        done = subprocess.run(
            command, env=os.environ | environment, capture_output=True, text=True, errors="replace",
            timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuilt(str(error)) from error
    if done.returncode:
        raise NotBuilt(f"{shlex.join(command)}\n{done.stderr}")

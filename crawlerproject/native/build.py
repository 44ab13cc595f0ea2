"""Builds the extension with the machine's C compiler, for ``make`` and for ``setup.py``."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from crawlerproject.native.sources import MODULE, SUFFIX, compiled, digest

COMPILERS = ("cc", "gcc", "clang")
# Hidden: selectolax has a lexbor of its own in the same process, and neither may be given the other's functions.
# Hardened as Debian's own packages are: the pages are anybody's.
FLAGS = (
    *("-O2", "-g0", "-std=gnu11", "-fPIC", "-pthread", "-DNDEBUG", "-DLEXBOR_STATIC", "-fvisibility=hidden"),
    *("-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"),
)
WARNINGS = ("-Wall", "-Wextra")  # for our own files
LINK = ("-shared", "-pthread", "-Wl,-z,relro,-z,now")
_SECONDS = 300.0  # a file takes three; a machine that is very busy gets a hundred times that


class NotBuilt(Exception):
    """The compiler or the linker failed; the message is what it said."""


def compiler() -> str:
    """The program to compile with; empty if there is none. CC in the environment names another."""
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


def _more() -> list[str]:
    """CFLAGS of the environment, which come last and so overrule ours, as everywhere."""
    return shlex.split(os.environ.get("CFLAGS", ""))


def build(folder: Path, target: Path) -> None:
    """Compile the sources in ``folder`` to ``target``, which is replaced in one step. Raises NotBuilt."""
    program, include = compiler(), headers()
    if not program or include is None:
        raise NotBuilt("there is no C compiler" if not program else "Python's C headers are missing")
    flags = [*FLAGS, f"-I{folder}", f"-I{include}", f'-DCRAWLER_SOURCES="{digest(folder)}"', *_more()]
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target: only within one file system is a rename one step.
    with TemporaryDirectory(prefix=".build-", dir=target.parent) as made, ThreadPoolExecutor(os.cpu_count()) as pool:

        def compile_one(source: Path) -> str:
            made_of = str(Path(made) / f"{source.stem}.o")
            warnings = WARNINGS if source.parent == folder else ("-w",)
            _run([program, *flags, *warnings, "-c", str(source), "-o", made_of])
            return made_of

        objects = list(pool.map(compile_one, compiled(folder)))
        library = Path(made) / target.name
        _run([program, *LINK, *objects, "-o", str(library)])
        os.replace(library, target)


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotBuilt(str(error)) from error
    if done.returncode:
        raise NotBuilt(f"{shlex.join(command)}\n{done.stderr}")

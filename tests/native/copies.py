"""A copy of the room with a small extension instead of the real one, which takes a moment to build."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from crawlerproject.native import build
from tests.web.running import PROJECT

# What the loader needs of module.c: its name, its sources' digest, and two functions.
SMALL = r"""
#include <Python.h>

static PyObject *length(PyObject *module, PyObject *source)
{
    (void) module;
    return PyLong_FromSsize_t(PyBytes_Size(source));
}

static PyMethodDef methods[] = {
    {"read", length, METH_O, NULL}, {"weight", length, METH_O, NULL}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_page", NULL, 0, methods, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__page(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddStringConstant(module, "SOURCES", CRAWLER_SOURCES) < 0)
        Py_CLEAR(module);
    return module;
}
"""
NATIVE = Path("crawlerproject", "native")
ASK = "from crawlerproject import native; print(native.choice.sentence, native.reader is not None)"


def copy_of_the_room(folder: Path) -> Path:
    """A project of that room alone in ``folder``, with a lexbor of empty files."""
    ours = [*(PROJECT / NATIVE).glob("*.py"), PROJECT / NATIVE / "lexbor.patch", PROJECT / "requirements.lock"]
    for source in (PROJECT / "crawlerproject" / "__init__.py", PROJECT / "scripts" / "build_native.py", *ours):
        target = folder / source.relative_to(PROJECT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    (folder / NATIVE / "module.c").write_text(SMALL)
    lexbor = folder / "build" / "lexbor"
    lexbor.mkdir(parents=True)
    for name in build.UNITS:
        (lexbor / name).touch()
    (lexbor / build.MADE_OF).write_text(build.made_of())
    return folder


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python there, with a clean environment."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder, env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(folder), **environment},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


def make(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What ``make crawl`` runs first."""
    return run(folder, "scripts/build_native.py", **environment)


def asked(folder: Path, code: str = ASK, **environment: str) -> tuple[str, str]:
    """What ``code`` prints there, and what is said on standard error."""
    done = run(folder, "-c", code, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr.strip()

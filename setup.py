"""The native page reader, which a wheel holds if it can be built. Everything else is in pyproject.toml."""

import sys
from compileall import compile_dir
from pathlib import Path
from py_compile import PycInvalidationMode
from shutil import rmtree

from setuptools import Extension, setup
from setuptools.command.bdist_egg import bdist_egg
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent))

from crawlerproject.native.build import NotBuilt, build, compiler, headers
from crawlerproject.native.sources import ENTRY, MODULE, compiled, every

NATIVE = Path("crawlerproject", "native")


class BuildNative(build_ext):
    """With the flags that ``make`` uses; where that fails, the package is what it is without a compiler."""

    def build_extension(self, ext: Extension) -> None:
        """Build the one there is."""
        try:
            build(NATIVE, Path(self.get_ext_fullpath(ext.name)))
        except NotBuilt as error:
            self.announce(f"The native page reader is left out: {error}", level=3)
            self.distribution.ext_modules = []


class Wheel(bdist_wheel):
    """For this platform if it holds the native reader, for every one if not."""

    def run(self) -> None:
        """Build first: only then is known which it is."""
        self.run_command("build_ext")
        if not self.distribution.ext_modules:
            self.root_is_pure = True
        super().run()


class Egg(bdist_egg):
    """What scrapyd runs: it does not unpack an egg, and no library can be loaded out of one."""

    def initialize_options(self) -> None:
        """Leave the native reader out."""
        super().initialize_options()
        self.distribution.ext_modules = []
        self.exclude_source_files = True  # has ``zap_pyfiles`` called before all is packed

    def zap_pyfiles(self) -> None:
        """Leave no source out, but put bytecode where Python looks for it in a zip file: beside its source.

        Without it each start of a job compiles every module, which takes longer than all else that a start does. Not
        by the sources' times: a zip file has these in the local time of the machine that packed it.
        """
        for unseen in Path(self.bdist_dir).rglob("__pycache__"):
            rmtree(unseen)
        unchecked = PycInvalidationMode.UNCHECKED_HASH
        compile_dir(self.bdist_dir, stripdir=self.bdist_dir, quiet=1, legacy=True, invalidation_mode=unchecked)


# In the order in which both sides agree on a name: relative to here, with slashes.
native = Extension(
    f"crawlerproject.native.{MODULE}",
    [path.as_posix() for path in compiled(NATIVE)],
    depends=[path.as_posix() for path in every(NATIVE)],
    optional=True,
)
possible = (NATIVE / ENTRY).is_file() and compiler() and headers()
# A source distribution holds the sources whether they can be compiled here or not.
wanted = possible or "sdist" in sys.argv
setup(
    ext_modules=[native] if wanted else [],
    cmdclass={"build_ext": BuildNative, "bdist_wheel": Wheel, "bdist_egg": Egg},
)

"""The native page reader, which a wheel holds if it can be built. Everything else is in pyproject.toml."""

import sys
from compileall import compile_dir
from pathlib import Path
from py_compile import PycInvalidationMode
from shutil import copyfile, rmtree

from setuptools import Extension, setup
from setuptools.command.bdist_egg import bdist_egg
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

sys.path.insert(0, str(Path(__file__).parent))

from crawlerproject.native import MODULE, build


class BuildNative(build_ext):
    """With the flags that ``make`` uses; where that fails, the package is what it is without a compiler."""

    def build_extension(self, ext: Extension) -> None:
        """Build the only extension."""
        try:
            build.build(Path(self.get_ext_fullpath(ext.name)))
        except build.NotBuilt as error:
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

    def write_wheelfile(self, wheelfile_base: str, *generator: str) -> None:
        """Add lexbor's licence to ours: the native reader holds lexbor, and the checkout does not."""
        super().write_wheelfile(wheelfile_base, *generator)
        if self.distribution.ext_modules:
            licences = Path(wheelfile_base, "licenses", "lexbor")
            licences.mkdir(parents=True)
            for name in build.NOTICES:
                copyfile(build.LEXBOR / name, licences / name)


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


def names(paths: list[Path]) -> list[str]:
    """As both sides of a build agree on them: relative to here, with slashes."""
    return [path.relative_to(build.ROOT).as_posix() for path in paths]


native = Extension(
    f"crawlerproject.native.{MODULE}", names(build.own_sources()), depends=names(build.build_inputs()), optional=True
)
possible = build.own_sources() and build.compiler() and build.headers()
# A source distribution holds the sources whether they can be compiled here or not.
wanted = possible or "sdist" in sys.argv
setup(
    ext_modules=[native] if wanted else [],
    cmdclass={"build_ext": BuildNative, "bdist_wheel": Wheel, "bdist_egg": Egg},
)

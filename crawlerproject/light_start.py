"""Starts of ``polite-crawler`` that import less: ``scrapy COMMAND`` has imported all of Scrapy before it looks which.

A command that looks at a folder imports of Scrapy its settings alone: ``import scrapy`` brings Twisted, lxml and
OpenSSL, two thirds of such a start. A crawl needs Scrapy, but not Twisted's TLS (ours is asyncio's), nor what guesses
encodings or serves XML-RPC: such modules are there from the start and run when something asks for more of them.
"""

from __future__ import annotations

import argparse
import gc
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scrapy.settings import Settings

_SCRAPY = "scrapy"
# These are built on Scrapy's own commands, or run a spider.
_SCRAPYS = frozenset({"crawl", "fetch", "fleet", "parse", "reparse", "runspider", "shell", "view"})
# What ScrapyCommand adds to each command beside -s; with one of them, or help, a command starts in Scrapy's way.
_GLOBAL = ("--help", "--logfile", "--loglevel", "--nolog", "--profile", "--pidfile", "--pdb")
_GLOBAL_LETTERS = ("-h", "-L")
_ARROW_ALONE = frozenset({"index", "load"})
"""Commands that write and read tables, and count nothing in them: numpy would be half of what Arrow takes to import."""
# Modules that a crawl runs late, each with the importer and the name of what is only called there. The last two hold
# commands that Scrapy imports to find ours among them.
_LATE = {
    "twisted.protocols.tls": ("twisted.internet._newtls", "TLSMemoryBIOFactory"),
    "twisted.internet.ssl": (),
    "http.cookiejar": (),
    "twisted.web.http": (),
    "charset_normalizer": ("scrapy.http.response.text", "from_bytes"),
    "scrapy.utils.ssl": ("scrapy.utils.versions", "get_openssl_version"),
    "xmlrpc.server": (),
    "http.cookies": ("scrapy.utils.curl", "SimpleCookie"),
    "packaging.version": ("scrapy.utils.display", "Version"),
    "jmespath": (),
    "scrapy.commands.bench": (),
    "scrapy.commands.check": (),
}
_loading = RLock()
_begun: list[str] = []


def is_light() -> bool:
    """Whether this process began so."""
    return bool(_begun)


def can_be_light(arguments: Sequence[str], known: frozenset[str]) -> bool:
    """Whether ``COMMAND …`` is one of the ``known`` names that needs no crawler, and asks for nothing of Scrapy's."""
    return (
        bool(arguments)
        and arguments[0] in known - _SCRAPYS
        and _SCRAPY not in sys.modules
        and not any(_is_global(each) for each in arguments[1:])
    )


def run(arguments: Sequence[str], parser_class: type[argparse.ArgumentParser]) -> NoReturn:
    """Execute a command that ``can_be_light``; ends the process with its exit status."""
    _install()
    from scrapy.exceptions import UsageError
    from scrapy.utils.project import get_project_settings

    name, *given = arguments
    if name in _ARROW_ALONE:
        run_late(ours=True)
    settings = get_project_settings()
    command = import_module(f"crawlerproject.commands.{name}").Command()
    gc.freeze()
    gc.enable()  # the entry point had it off for the imports
    parser = parser_class(
        usage=f"scrapy {name} {command.syntax()}", conflict_handler="resolve", description=command.long_desc()
    )
    settings.setdict(command.default_settings, priority="command")
    command.settings = settings
    command.add_options(parser)
    options, rest = parser.parse_known_args(given)
    try:
        command.process_options(rest, options)
        command.run(rest, options)
    except UsageError as error:
        parser.error(str(error))
    sys.exit(command.exitcode)


class LightCommand:
    """What of ``ScrapyCommand`` a command without a crawler uses, with ``-s NAME=VALUE`` alone."""

    requires_project = True
    requires_crawler_process = False
    default_settings: ClassVar[dict[str, Any]] = {}
    settings: Settings
    exitcode = 0

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """The option for settings."""
        parser.add_argument("-s", "--set", action="append", default=[], metavar="NAME=VALUE")

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Set what ``-s`` says. Raises UsageError."""
        from scrapy.exceptions import UsageError
        from scrapy.utils.conf import arglist_to_dict

        try:
            self.settings.setdict(arglist_to_dict(opts.set), priority="cmdline")
        except ValueError:
            raise UsageError("Invalid -s value, use -s NAME=VALUE", print_help=False) from None


class _LazyPackage(ModuleType):
    """Scrapy's package, whose modules can be imported; it is run itself once it is asked for a name of its own."""

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":  # of the User-Agent that Scrapy's own settings have
            with open(f"{self.__path__[0]}/VERSION", encoding="ascii") as file:
                return file.read().strip()
        if name.startswith("__") or PathFinder.find_spec(f"{_SCRAPY}.{name}", self.__path__):
            raise AttributeError(name)  # a module of the package, which the import looks for next
        object.__setattr__(self, "__class__", ModuleType)
        assert self.__spec__ is not None
        assert self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def _install() -> None:
    spec = find_spec(_SCRAPY)
    assert spec is not None
    package = module_from_spec(spec)
    package.__class__ = _LazyPackage
    _begun.append(_SCRAPY)
    sys.modules[_SCRAPY] = package


def run_late(*, ours: bool) -> None:
    """Before Scrapy is imported, for a crawl: what it does not need of others runs when it is asked for.

    ``ours``: no project of the caller's runs here. Then Arrow, which writes the index as the crawl ends, comes without
    numpy: that is optional, and a twelfth of a short crawl.
    """
    sys.meta_path.insert(0, _LateFinder(ours))


class _LateFinder:
    """Finds the modules in ``_LATE`` and leaves them empty."""

    def __init__(self, ours: bool) -> None:
        self._arrow_alone = ours

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        """The import system: as the module is found on the path, but loaded here."""
        if name == "numpy" and self._arrow_alone and _asks("pyarrow"):
            raise ModuleNotFoundError("Arrow is imported without numpy.", name=name)
        spec = PathFinder.find_spec(name, path, target) if name in _LATE else None
        if spec is not None:
            spec.loader_state, spec.loader = spec.loader, self  # type: ignore[assignment]  # which it is by its methods
        return spec

    def create_module(self, _: ModuleSpec) -> None:
        """The import system: a module as any other."""

    def exec_module(self, module: ModuleType) -> None:
        """The import system: nothing runs yet."""
        module.__class__ = _LateModule


class _LateModule(ModuleType):
    """A module that is executed when one of its names is needed; for the name in ``_LATE``, when that is called."""

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # the import system asks each module whether it is a package
            raise AttributeError(name)
        importer, called = _LATE[self.__name__] or ("", "")
        if name == called and sys._getframe(1).f_globals.get("__name__") in (importer, "importlib._bootstrap"):

            def run_and_call(*given: Any, **named: Any) -> Any:
                return getattr(self._run(), name)(*given, **named)

            return run_and_call
        return ModuleType.__getattribute__(self._run(), name)

    def _run(self) -> ModuleType:
        with _loading:
            spec = self.__spec__
            if spec is not None and isinstance(spec.loader, _LateFinder):
                spec.loader = self.__loader__ = spec.loader_state
                spec.loader.exec_module(self)
                self.__class__ = ModuleType  # now: another thread's question waits until then
        return self


def _asks(module: str) -> bool:
    """Whether this thread is importing ``module``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != module:
        frame = frame.f_back
    return frame is not None


def _is_global(argument: str) -> bool:
    """Also one that argparse would complete."""
    if argument.startswith("--"):
        return any(each.startswith(argument.partition("=")[0]) for each in _GLOBAL)
    return argument.startswith(_GLOBAL_LETTERS)

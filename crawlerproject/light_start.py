"""A start that imports of Scrapy its settings alone: ``polite-crawler COMMAND`` for commands that look at a folder.

``import scrapy`` brings Twisted, lxml and OpenSSL, two thirds of such a command's start. ``scrapy COMMAND`` has
imported all of it before it asks for the command; our own entry point can do without.
"""

from __future__ import annotations

import argparse
import gc
import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
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


def _is_global(argument: str) -> bool:
    """Also one that argparse would complete."""
    if argument.startswith("--"):
        return any(each.startswith(argument.partition("=")[0]) for each in _GLOBAL)
    return argument.startswith(_GLOBAL_LETTERS)

"""The arguments of a crawl beside its seeds and its scope: patterns of URLs, and limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from scrapy.settings import BaseSettings

from crawlerproject.errors import OperatorError
from crawlerproject.rules.limits import LIMITS, BadLimit, amount
from crawlerproject.rules.url.scope import BadGlob, Glob, globs

INCLUDE, EXCLUDE = "include", "exclude"
PATTERNS = (INCLUDE, EXCLUDE)
_ALL = ("seeds", "scope", "mode", "budget", "accept", *PATTERNS, *LIMITS)
_OF_A_DAEMON = "_"  # scrapyd gives each job its _job
# difflib's measure, as for settings: one letter wrong in the shortest (mode, seeds) gives 0.75 to 0.8.
_LIKENESS = 0.75


@dataclass(slots=True, frozen=True)
class Arguments:
    """What was given; None (or no key) where nothing was. Texts as they were written, each checked."""

    include: list[str] | None = None
    exclude: list[str] | None = None
    limits: Mapping[str, str | float] = field(default_factory=dict)


def arguments_of(given: MutableMapping[str, Any], of_class: type | None = None) -> Arguments:
    """Take ours out of ``given``, those of ``-a``; a spider's class may have them as attributes. Raises OperatorError.

    What is nearly one of ours is refused: a misspelt limit would silently not hold.
    """
    taken: dict[str, Any] = {
        name: given.pop(name, None) or getattr(of_class, name, None) for name in (*PATTERNS, *LIMITS)
    }
    for name in given:
        near = get_close_matches(name, _ALL, n=1, cutoff=_LIKENESS)
        if near and name not in _ALL and not hasattr(of_class, name):
            raise OperatorError(f"-a {name}= is no argument of a crawl; {near[0]} was probably meant.")
    patterns = {name: written(name, taken[name]) if taken[name] is not None else None for name in PATTERNS}
    limits = {name: taken[name] for name in LIMITS if taken[name] is not None}
    check_limits(limits)
    return Arguments(patterns[INCLUDE], patterns[EXCLUDE], limits)


def refuse_unknown_arguments(given: Iterable[str], spider: str, own: tuple[str, ...] = ()) -> None:
    """Raise OperatorError for an argument that neither ``_ALL`` nor the spider's ``own`` have.

    For the spiders that come with the crawler: nothing would read it, so that a bound that was meant would not hold. A
    spider of a project may have arguments of its own.
    """
    for name in given:
        if name not in (*_ALL, *own) and not name.startswith(_OF_A_DAEMON):
            raise OperatorError(
                f"-a {name}= is no argument of the spider {spider}; it has {', '.join((*own, *_ALL))}. "
                "Settings are given with -s NAME=VALUE."
            )


def refuse_other_than_one(settings: BaseSettings, args: Sequence[str]) -> None:
    """Raise OperatorError when what follows ``scrapy crawl`` is not the name of one spider of the project."""
    if args == ["web"]:  # the loader imports every spider
        return
    from scrapy.spiderloader import get_spider_loader  # brings Twisted, for `scrapy crawl` alone

    option = next((each for each in args if each.startswith("-")), None)
    if option is not None:
        raise OperatorError(f"There is no option {option}; scrapy crawl -h lists them all.")
    known = ", ".join(sorted(get_spider_loader(settings).list()))
    if not args:
        raise OperatorError(f"Name a spider ({known}), for example: scrapy crawl web -a seeds=seeds.txt")
    if len(args) > 1:
        raise OperatorError(
            f"Name one spider, not {' and '.join(args)}; seeds are given with -a: scrapy crawl web -a seeds={args[-1]}"
        )
    if args[0] not in known.split(", "):
        hint = " Seeds are given with -a seeds=…." if set(args[0]) & {".", "/"} else ""
        raise OperatorError(f"There is no spider {args[0]!r}; there are {known}.{hint}")


def written(name: str, patterns: str | list[str]) -> list[str]:
    """Patterns as a list of texts. Raises OperatorError for one that cannot be meant."""
    return [pattern.text for pattern in read(name, patterns)]


def read(name: str, patterns: str | list[str]) -> tuple[Glob, ...]:
    """Patterns, taken apart. Raises OperatorError."""
    try:
        return globs(patterns)
    except BadGlob as error:
        raise OperatorError(f"-a {name}=: {error}.") from None


def check_limits(limits: Mapping[str, str | float]) -> None:
    """Raise OperatorError for an amount that cannot be read."""
    for name, value in limits.items():
        try:
            amount(name, value)
        except BadLimit as error:
            raise OperatorError(str(error)) from None

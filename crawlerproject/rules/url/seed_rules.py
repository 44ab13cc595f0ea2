"""Decides what a seed's own options make of its place: ``https://example.org/blog/ scope=path exclude=*/tag/*``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from crawlerproject.rules.limits import CRAWL_LIMITS, BadLimit, Limits, amount, limits_of
from crawlerproject.rules.url.globs import BadGlob, Glob, first_match, glob

SCOPES = ("any", "domain", "host", "path")
_PATTERNS = ("include", "exclude")
OPTIONS = ("scope", *_PATTERNS, *CRAWL_LIMITS)


class BadOption(ValueError):
    """An option that cannot be read; the message is a sentence for the operator."""


class SeedRule(NamedTuple):
    """What of a seed's place belongs to the crawl, and how much of its host. Limits are those of the seed's host."""

    url: str
    host: str
    scope: str = ""  # "": as the crawl has it
    include: tuple[Glob, ...] = ()
    exclude: tuple[Glob, ...] = ()
    limits: Limits = Limits()

    def refusal(self, url: str) -> str:
        """Which pattern keeps a URL of the seed's place out, in words; "" when none does."""
        if self.exclude and (found := first_match(self.exclude, url)) is not None:
            return f"exclude={found.text} of the seed {self.url}"
        if self.include and first_match(self.include, url) is None:
            return f"no include= of the seed {self.url} matches: {_named(self.include)}"
        return ""

    def moved(self, host: str, url: str) -> SeedRule:
        """The same rule where a redirect of the seed leads: the target's path, of a front page the path as it was."""
        place = url if prefix_of(url) != "/" else f"{url.partition('://')[0]}://{host}{path_of(self.url)}"
        return self._replace(url=place, host=host)


class Places:
    """What the seeds of one host (or domain) take in, found by the folders that a URL lies in.

    A host may have very many seeds: a URL is looked up once for each of its folders, not held against each seed.
    """

    def __init__(self) -> None:
        self._by_prefix: dict[str, list[SeedRule]] = {}
        self._deepest = 1  # slashes of a prefix

    def add(self, rule: SeedRule, scope: str) -> bool:
        """One more seed; whether it changes anything. ``scope`` ``path``: it takes in no more than its folder."""
        prefix = prefix_of(rule.url) if scope == "path" else "/"
        rules = self._by_prefix.setdefault(prefix, [])
        if any((rule.include, rule.exclude) == (one.include, one.exclude) for one in rules):
            return False
        rules.append(rule)
        self._deepest = max(self._deepest, prefix.count("/"))
        return True

    def of(self, url: str) -> Iterator[SeedRule]:
        """The seeds in whose folders the URL lies."""
        path, end = f"{path_of(url)}/", 0  # the folder itself may be written without its slash
        for _ in range(self._deepest):
            end = path.find("/", end) + 1
            if not end:
                return
            yield from self._by_prefix.get(path[:end], ())

    def takes(self, url: str) -> bool:
        """Whether one of the seeds takes the URL in."""
        return any(not rule.refusal(url) for rule in self.of(url))

    def prefixes(self, most: int = 5) -> list[str]:
        """The first of the folders."""
        named = sorted(self._by_prefix)
        return named[:most] + (["…"] if len(named) > most else [])


def rule_of(url: str, host: str, options: str) -> SeedRule:
    """The rule of one seed; ``options`` are ``key=value``, separated by blanks. Raises BadOption."""
    scope, patterns, amounts = "", {name: list[Glob]() for name in _PATTERNS}, dict[str, str]()
    for option in options.split():
        name, equals, value = option.partition("=")
        if not equals or not value or name not in OPTIONS:
            raise BadOption(f"{option!r} is no option of a seed; those are {', '.join(f'{one}=' for one in OPTIONS)}")
        try:
            if name in _PATTERNS:
                patterns[name].append(glob(value))
            elif name in CRAWL_LIMITS:
                amount(name, value)
                amounts[name] = value
            elif value in SCOPES:
                scope = value
            else:
                raise BadOption(f"the scope {value!r} is unknown; use one of {', '.join(SCOPES)}")
        except (BadGlob, BadLimit) as error:
            raise BadOption(str(error).removesuffix(".")) from None
    include, exclude = (tuple(patterns[name]) for name in _PATTERNS)
    return SeedRule(url, host, scope, include, exclude, limits_of(amounts))


def path_of(url: str) -> str:
    """The path of an absolute URL, without its query."""
    place = url.partition("://")[2].partition("?")[0]
    return place[place.find("/") :] if "/" in place else "/"


def prefix_of(url: str) -> str:
    """The folder that a seed names: ``/blog/`` for ``/blog/``, ``/blog/index.html`` and ``/blog`` alike.

    A last segment with a dot is a file in its folder; one without is taken for the folder itself, the narrower reading.
    """
    folder, _, last = path_of(url).rpartition("/")
    return f"{folder}/" if not last or "." in last else f"{folder}/{last}/"


def host_limits(rules: Iterable[SeedRule]) -> Mapping[str, Limits]:
    """Limits that seeds have of their own, by host key; of several seeds of one host the later."""
    return {rule.host: rule.limits for rule in rules if any(rule.limits)}


def _named(patterns: Iterable[Glob]) -> str:
    return " ".join(pattern.text for pattern in patterns)

"""Decides what belongs to the crawl: which addresses a list of seeds names, and which URLs are within their scope.

``https://example.org/blog/ scope=path exclude=*/tag/*``: a seed may have options of its own. A URL belongs to the crawl
by the hosts, domains or paths of its seeds, by the patterns of the operator, by depth and length. In a pattern ``*``
stands for any characters, everything else for itself; no regular expressions: matching takes time in proportion to the
URL, whatever URL a site invents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, get_args
from urllib.parse import quote, unquote

from crawlerproject.reasons import Reason
from crawlerproject.rules.limits import CRAWL_LIMITS, BadLimit, Limits, amount, limits_of
from crawlerproject.rules.url.domains import bounded_domain, registered_domain
from crawlerproject.rules.url.refused_urls import bad_port
from crawlerproject.rules.url.urls import Address, UrlRefused, host_key, parse

# Of one pattern: what a URL costs at most is this times its length.
MAX_CHARACTERS = 500
# All of ASCII stays as it is; other characters stand in URLs as the escapes of their UTF-8 octets (RFC 3986 2.5).
_AS_THEY_ARE = "".join(map(chr, range(0x21, 0x7F)))
SCOPES = ("any", "domain", "host", "path")
_PATTERNS = ("include", "exclude")
OPTIONS = ("scope", *_PATTERNS, *CRAWL_LIMITS)
# "example.org", "example.org:8080/x": a name with a dot or localhost, perhaps a port that is digits.
_BARE = re.compile(r"(?:[^\s:/?#@]+\.[^\s:/?#@]+|localhost|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:[/?#].*)?")
_WITH_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,20}://\S+")
_NAME = re.compile(r"[^\s:/?#@]+\.[^\s:/?#@]+")

# Where the options of a line begin; a blank before anything else is part of the URL.
_OPTIONS = re.compile(r"\s(?=[a-z_]{1,20}=)")


class BadGlob(ValueError):
    """A pattern that was meant otherwise; the message is a sentence for the operator."""


class Glob(NamedTuple):
    """One pattern, taken apart at its stars."""

    text: str  # as it was written
    place: str  # what it is matched with: "url", "path" (with the query) or "host" (host and path, no scheme)
    head: str
    parts: tuple[str, ...]  # between two stars
    tail: str | None  # None: there is no star, so that ``head`` is all

    def matches(self, url: str) -> bool:
        """Whether the pattern matches a URL, written as ``rules.urls`` writes it, from its beginning to its end."""
        subject = url
        if self.place != "url":
            subject = url.partition("://")[2]
            if self.place == "path":
                subject = subject[subject.find("/") :]
        if self.tail is None:
            return subject == self.head
        at, end = len(self.head), len(subject) - len(self.tail)
        if end < at or not subject.startswith(self.head) or not subject.endswith(self.tail):
            return False
        for part in self.parts:  # the first place is as good as any later one
            at = subject.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return True


def glob(text: str) -> Glob:
    """A pattern as it was written. Raises BadGlob.

    ``/blog/*`` is matched with path and query, ``https://…`` with the whole URL, anything else with host and path:
    ``example.org/a/*``, ``*.pdf``.
    """
    if len(text) > MAX_CHARACTERS:
        raise BadGlob(f"the pattern {text[:40]!r}… has over {MAX_CHARACTERS} characters")
    if "*" not in text and "/" not in text:
        raise BadGlob(f"the pattern {text!r} would match no URL; * stands for any characters: *{text}*")
    place = "url" if "://" in text else "path" if text.startswith("/") else "host"
    pieces = quote(text, safe=_AS_THEY_ARE).split("*")
    if len(pieces) == 1:
        return Glob(text, place, pieces[0], (), None)
    return Glob(text, place, pieces[0], tuple(filter(None, pieces[1:-1])), pieces[-1])


def globs(text: str | Sequence[str]) -> tuple[Glob, ...]:
    """Patterns separated by blanks, which no URL has, or a list of them. Raises BadGlob."""
    return tuple(map(glob, text.split() if isinstance(text, str) else map(str, text)))


def first_match(patterns: Iterable[Glob], url: str) -> Glob | None:
    """The first of the patterns that matches."""
    for pattern in patterns:
        if pattern.matches(url):
            return pattern
    return None


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
            return f"no include= of the seed {self.url} matches: {' '.join(pattern.text for pattern in self.include)}"
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

    def prefixes(self) -> list[str]:
        """The first five of the folders, and whether there are more."""
        named = sorted(self._by_prefix)
        return named[:5] + (["…"] if len(named) > 5 else [])


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


class BadSeed(NamedTuple):
    """A line that names no address, or one that is never asked."""

    line_number: int  # from 1
    text: str
    reason: Reason


class Seeds(NamedTuple):
    """What a list of seeds says."""

    addresses: list[Address]  # in order, each key once
    problems: list[BadSeed]
    options: dict[str, str]  # by the seed's URL: ``key=value``, separated by blanks; seeds that have any


_LOST = "\ufffd"  # what no UTF-8 was


def seeds_of(text_lines: Iterable[str]) -> Seeds:
    """One URL a line, or several with blanks between them, options behind. Raises BadOption.

    Blank lines and ``#`` comments are skipped.

    A bare ``example.org`` is taken as ``https://example.org``, the way a browser's address bar does today.
    """
    seeds: dict[bytes, Address] = {}
    problems: list[BadSeed] = []
    options: dict[str, str] = {}
    for number, line in enumerate(text_lines, 1):
        written, *rest = _OPTIONS.split(_without_comment(line), maxsplit=1)
        for text in _several(written):
            if _LOST in text:  # it would be asked for as another URL
                problems.append(BadSeed(number, text, Reason.INVALID_URL))
                continue
            try:
                address = parse(f"https://{text}" if _BARE.fullmatch(text) else text)
            except UrlRefused as refused:
                problems.append(BadSeed(number, text, refused.reason))
                continue
            if bad_port(address.host):
                problems.append(BadSeed(number, text, Reason.BAD_PORT))
                continue
            address = seeds.setdefault(address.key, address)
            if rest:
                try:  # a misspelt option would let in what was meant to stay out
                    rule_of(address.url, address.host, rest[0])
                except BadOption as error:
                    raise BadOption(f"line {number}: {error}") from None
                options[address.url] = " ".join(rest[0].split())
    return Seeds(list(seeds.values()), problems, options)


def _several(text: str) -> list[str]:
    """Seeds beside each other, all with a scheme or all bare names; any other blank is part of its URL."""
    words = text.split()
    return words if any(all(map(form.fullmatch, words)) for form in (_WITH_SCHEME, _NAME)) else [text]


def _without_comment(line: str) -> str:
    text = line.lstrip("\ufeff").strip()
    if text.startswith("#"):
        return ""
    # A "#" after a blank starts a comment; one within a URL is its fragment.
    return re.split(r"\s#", text, maxsplit=1)[0].rstrip()


Mode = Literal["any", "domain", "host", "path"]

# DESIGN section 4: bounds against endless sites.
DEFAULT_MAX_DEPTH = 20
DEFAULT_MAX_URL_LENGTH = 2000
# Seeds whose patterns keep a URL out that ``why`` names.
_NAMED = 3
# Hosts of addresses within a query, and SAML's request, which says in its own way where the visitor came from.
_NAMED_HOST = re.compile(r"://([^/?#&:\s]{1,253})")
_SAML = "samlrequest="


class ScopedUrl(Protocol):
    """What of an address matters here."""

    @property
    def url(self) -> str: ...

    @property
    def host(self) -> str: ...


def comes_back(url: str, target: str) -> bool:
    """Whether a redirect from ``url`` is no move: it goes to a login, a consent or the like that is to send us back.

    Such a target names in its query an address of the domain that it was reached from, or carries a SAML request.
    """
    query = unquote(unquote(target.partition("?")[2])).lower()
    if query.startswith(_SAML) or f"&{_SAML}" in query:
        return True
    home = bounded_domain(host_key(url))
    return any(bounded_domain(name) == home for name in _NAMED_HOST.findall(query))


class Patterns(NamedTuple):
    """What an operator says of a crawl beside its mode."""

    include: tuple[Glob, ...] = ()  # a link must match one of them, if there is any
    exclude: tuple[Glob, ...] = ()  # and none of these
    seeds: tuple[SeedRule, ...] = ()  # of places whose seeds have options; with mode ``path`` all seeds


class Scope:
    """What belongs to one crawl. ``mode``: ``any`` host, the seeds' ``domain``s, exactly the seeds' ``host``s, or what
    lies below the seeds' ``path``s.

    A host with a seed that has options of its own is governed by its seeds: a URL there belongs to the crawl when one
    of them takes it in. The other hosts are as ``mode`` says.
    """

    def __init__(
        self,
        mode: str,
        seed_hosts: Iterable[str] = (),
        *,
        max_depth: int = DEFAULT_MAX_DEPTH,
        max_url_length: int = DEFAULT_MAX_URL_LENGTH,
        patterns: Patterns | None = None,
    ) -> None:
        """``seed_hosts`` are host keys; ``max_depth`` counts links from a seed, ``max_url_length`` characters."""
        if mode not in get_args(Mode):
            raise ValueError(f"scope must be one of {', '.join(get_args(Mode))}, not {mode!r}")
        self.mode = mode
        self.max_depth = max_depth
        self.max_url_length = max_url_length
        hosts = frozenset(seed_hosts)
        self._patterns = patterns or Patterns()
        self._by_host: dict[str, Places] = {}
        self._by_domain: dict[str, Places] = {}
        # Whether more than hosts is chosen; what was queued before a pattern was added is judged again then.
        self.choosy = bool(self._patterns.include or self._patterns.exclude)
        for rule in self._patterns.seeds:
            self.govern(rule)
        self._inside = frozenset(map(registered_domain, hosts)) if mode == "domain" else hosts

    def widen(self, host: str) -> bool:
        """A seed has moved to ``host``, so that its place belongs to the crawl as well; True when it did not before."""
        if self.mode == "path":
            return False  # ``move`` says which part of the host
        place = registered_domain(host) if self.mode == "domain" else host
        if self.mode == "any" or place in self._inside:
            return False
        self._inside |= {place}
        return True

    def move(self, seed_url: str, url: str) -> bool:
        """A seed whose place has rules was redirected to ``url``: they hold there too; True when that is new."""
        host, places = host_key(url), self._governing(host_key(seed_url))
        if places is None or not host:
            return False
        known = self._governing(host)
        if known is not None and known.takes(url):
            return False
        moved = [rule.moved(host, url) for rule in places.of(seed_url) if not rule.refusal(seed_url)]
        changed = [self.govern(rule) for rule in moved]
        return any(changed)

    def governs(self, host: str) -> bool:
        """Whether seeds with rules of their own say what of the host belongs to the crawl."""
        return self._governing(host) is not None

    def refusal(self, address: ScopedUrl, depth: int, *, is_list: bool = False) -> Reason | None:
        """Why the address does not belong to the crawl; None when it does. ``is_list``: it is a sitemap."""
        if depth > self.max_depth:
            return Reason.DEPTH
        if len(address.url) > self.max_url_length:
            return Reason.URL_LENGTH
        if not self.choosy:
            return None if self.mode == "any" else self._mode_refusal(address.host)
        return self.place_refusal(address, is_list=is_list)

    def place_refusal(self, address: ScopedUrl, *, is_list: bool = False) -> Reason | None:
        """The part of ``refusal`` that is about hosts, paths and patterns."""
        places = self._governing(address.host)
        if is_list:  # it lies where its site has it, and names pages, each of which is judged
            return None if places is not None else self._mode_refusal(address.host)
        url, (include, exclude, _) = address.url, self._patterns
        if (exclude and first_match(exclude, url)) or (include and not first_match(include, url)):
            return Reason.SCOPE
        if places is None:
            return self._mode_refusal(address.host)
        return None if places.takes(url) else Reason.SCOPE

    def excludes(self, url: str) -> bool:
        """Whether a pattern of the operator's keeps a URL out whatever it is for."""
        return bool(self._patterns.exclude) and bool(first_match(self._patterns.exclude, url))

    def why(self, address: ScopedUrl) -> str:
        """What of mode, patterns and seeds keeps the address out, in words; "" when nothing does."""
        if self.place_refusal(address) is None:
            return ""
        include, exclude, _ = self._patterns
        if (found := first_match(exclude, address.url)) is not None:
            return f"-a exclude={found.text}"
        if include and not first_match(include, address.url):
            return f"no pattern of -a include= matches: {' '.join(pattern.text for pattern in include)}"
        if (places := self._governing(address.host)) is not None:
            refusals = [rule.refusal(address.url) for rule in places.of(address.url)]
            return (
                "; ".join(refusals[:_NAMED])
                if refusals
                else f"below none of the seeds' paths there: {' '.join(places.prefixes())}"
            )
        return f"-a scope={self.mode}: not of the seeds' {self.mode}s"

    def _mode_refusal(self, host: str) -> Reason | None:
        if self.mode == "any":
            return None
        place = registered_domain(host) if self.mode == "domain" else host
        return None if place in self._inside and self.mode != "path" else Reason.SCOPE

    def govern(self, rule: SeedRule) -> bool:
        """Take in a seed with rules of its own; whether that changes anything."""
        self.choosy = True
        scope = rule.scope or self.mode
        if scope == "domain":
            self._by_domain.setdefault(registered_domain(rule.host), Places()).add(rule, scope)
        return self._by_host.setdefault(rule.host, Places()).add(rule, scope)

    def _governing(self, host: str) -> Places | None:
        """The places of seeds with rules at a host, or at its domain."""
        places = self._by_host.get(host)
        if places is None and self._by_domain:
            places = self._by_domain.get(registered_domain(host))
        return places

"""Decides which registered domain a host belongs to, by the public suffix list that comes with tldextract.

tldextract itself imports requests, for a download that we do not make, and builds the whole list as a tree, twice:
0.07 s of each start. Here a name is looked up among the rules of its top-level domain, by tldextract's own steps. Names
that tldextract would first have to clean or decode go to tldextract.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from crawlerproject.rules.url.urls import host_name

if TYPE_CHECKING:
    from tldextract import TLDExtract

_Rules = dict[str | None, Any]  # label to the rules below it
_END = None  # no label: a rule ends here

# As in tldextract: what is a rule, and where those of private registrars (github.io) begin.
_RULE = re.compile(r"^[.*!]*\w\S*", re.MULTILINE)
_PRIVATE = "// ===BEGIN PRIVATE DOMAINS==="
_FILE = ".tld_set_snapshot"
# Of these tldextract changes nothing, but for labels in punycode.
_PLAIN = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_PUNYCODE = "xn--"
# Host names whose domain is kept at hand; a crawl meets the same hosts again and again.
_KEPT = 65_536


@lru_cache(maxsize=_KEPT)
def registered_domain(host: str) -> str:
    """The registrable domain of a host key ("a.b.example.co.uk:81" is "example.co.uk"); IP addresses, and
    names without one (localhost, a bare suffix), are their own. Private domains count (github.io), so that two
    people's sites under one provider are two domains.
    """
    name = host_name(host)
    if name.startswith("["):
        return name
    return domain_of(name, private=True).registered or name


@lru_cache(maxsize=_KEPT)
def bounded_domain(host: str) -> str:
    """The domain below which one owner can invent names: the registered one, and of names below a suffix that the
    list does not know (a newer one, a private network's) the last two labels, as the list's rule "*" has it.
    """
    name = host_name(host)
    domain = registered_domain(host)
    if domain != name or name.startswith("[") or name.count(".") < 2 or name[-1:].isdigit():
        return domain
    return domain if domain_of(name, private=True).suffix else ".".join(name.rsplit(".", 2)[1:])


def is_public_suffix(name: str) -> bool:
    """Whether others register domains below this host name: "com", "co.uk", and private ones as "github.io"."""
    return domain_of(name, private=True).suffix == name


class Domain(NamedTuple):
    """What the list says of a name; "" where it knows no suffix."""

    registered: str  # the suffix with one more label, or "" when the name has no more
    suffix: str


def domain_of(name: str, *, private: bool) -> Domain:
    """Of a host name without a port. ``private``: suffixes of private registrars count, as github.io does."""
    by_top = _by_top_level(private=private)
    if by_top is None or _PUNYCODE in name or not _PLAIN.fullmatch(name):
        found = _tldextract()(name, include_psl_private_domains=private)
        return Domain(found.top_domain_under_public_suffix, found.suffix)
    labels = name.split(".")
    begin = _begin(labels, _tree(labels[-1], private=private))
    suffix = ".".join(labels[begin:])
    return Domain(f"{labels[begin - 1]}.{suffix}" if suffix and begin else "", suffix)


def _begin(labels: list[str], rules: _Rules) -> int:
    """Where the suffix begins among the labels: behind them without one."""
    found = at = len(labels)
    for label in reversed(labels):
        if label in rules:
            at -= 1
            rules = rules[label]
            if _END in rules:
                found = at
            continue
        if "*" in rules:
            return at if f"!{label}" in rules else at - 1
        break
    return found


@cache
def _tree(top_level: str, *, private: bool) -> _Rules:
    """The rules of one top-level domain, from the last label to the first."""
    tree: _Rules = {}
    for rule in (_by_top_level(private=private) or {}).get(top_level, ()):
        node = tree
        for label in reversed(rule.split(".")):
            node = node.setdefault(label, {})
        node[_END] = True
    return tree


@cache
def _by_top_level(*, private: bool) -> dict[str, list[str]] | None:
    """All rules by their last label; None where the file is not."""
    text = _list()
    if text is None:
        return None
    found: dict[str, list[str]] = {}
    for rule in _RULE.findall(text if private else text.partition(_PRIVATE)[0]):
        found.setdefault(rule.rpartition(".")[2], []).append(rule)
    return found


@cache
def _list() -> str | None:
    """The list, read without importing the package."""
    spec = find_spec("tldextract")
    get_data = getattr(spec.loader, "get_data", None) if spec is not None else None  # of folders and of zip files
    if spec is None or spec.origin is None or get_data is None:
        return None
    try:
        return str(get_data(str(PurePath(spec.origin).with_name(_FILE))), "utf-8")
    except OSError:  # a version that keeps it elsewhere
        return None


@cache
def _tldextract() -> TLDExtract:
    """Without the network."""
    import tldextract  # and with it requests: not before it is needed

    return tldextract.TLDExtract(cache_dir=None, suffix_list_urls=())

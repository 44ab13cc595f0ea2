"""Every kind of fact that is kept of each host: a fact's name is its kind and the host's key.

Facts of these kinds are part of a host's partition and move with it from worker to worker. All other facts are their
worker's own, so a kind that is missing here would stay behind.
"""

from __future__ import annotations

from enum import StrEnum


class HostFact(StrEnum):
    """The prefixes of the facts' names."""

    TRAPS = "traps/"  # frontier/learned/traps.py: what templates of URLs have yielded
    STRANGERS = "strangers/"  # frontier/learned/traps.py: what other domains have named
    REQUISITES = "requisites/"  # frontier/learned/traps.py: what page requisites have yielded
    CERTIFICATE = "certificate/"  # frontier/learned/certificates.py
    RENDERS = "render/"  # frontier/learned/renders.py
    VISITS = "visits:"  # frontier/learned/revisits.py
    ROBOTS_SENT = "robots-sent/"  # frontier/robots_responses.py
    DOMAIN = "domains/"  # frontier/hosts/domain_models.py
    NAMED = "named/"  # frontier/hosts/domain_models.py: hosts that a domain has named


OF_NAMES = frozenset({HostFact.TRAPS, HostFact.STRANGERS, HostFact.REQUISITES})
"""Kept under the host name, for all of its ports together."""
OF_DOMAINS = frozenset({HostFact.DOMAIN, HostFact.NAMED})
"""Kept under the registered domain, all of whose hosts are in one partition."""
_KINDS = tuple(str(kind) for kind in HostFact)


def host_of_fact(name: str) -> str:
    """The host or domain that a fact is about; "" when the fact is its worker's."""
    return next((name.removeprefix(kind) for kind in _KINDS if name.startswith(kind)), "")

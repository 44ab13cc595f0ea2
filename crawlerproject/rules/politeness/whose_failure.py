"""Decides whether it is hosts that fail or the network of this machine: by whether any other host is still reached."""

from __future__ import annotations

from crawlerproject.reasons import Reason

# What a cut line, a resolver without an uplink, or a captive portal looks like from here.
_EITHER = frozenset(
    {
        Reason.DNS_FAILED,
        Reason.CONNECT_TIMEOUT,
        Reason.CONNECT_REFUSED,
        Reason.CONNECT_FAILED,
        Reason.TLS_CERTIFICATE,
        Reason.TLS_FAILED,
        Reason.PROXY_FAILED,
        Reason.FIRST_BYTE_TIMEOUT,
        Reason.DISCONNECTED,
    }
)
# Of them, what a machine that has just started without a network sees of hosts that it has never reached. A refusal
# or a wrong certificate is an answer, and lists of seeds have many that are dead.
_OF_UNREACHED = frozenset({Reason.DNS_FAILED, Reason.CONNECT_TIMEOUT, Reason.CONNECT_FAILED})

NETWORK_AUTHENTICATION = 511
"""RFC 6585 section 6: the answer of a captive portal that says what it is."""

QUIET_SECONDS = 1.0
"""A failure is the host's as soon as another host answers; when none has for so long, known ones are tried (ours)."""

BELIEVED_SECONDS = 60.0
"""So long it holds that one was reached: a crawl whose last hosts are dead opens one connection a minute (ours)."""

MOST_KNOWN_ENDPOINTS = 8
"""Addresses that answered of late and may be tried: in turn, so that each is seldom tried (ours)."""

LEAST_KNOWN_ENDPOINTS = 2
"""With fewer a dead site looks like a dead line: it counts as the site's failure (ours)."""

LEAST_UNREACHED_HOSTS = 5
"""Different hosts that must fail at a start, before any has answered, to speak against the line (ours)."""

MAX_WAIT_SECONDS = 604_800.0
"""A week: when no host was reached for so long, failures are the hosts' again (NETWORK_MAX_WAIT_SECONDS, ours)."""

UNREACHED_WAIT_SECONDS = 86_400.0
"""No longer is waited when no host has answered since the start: all of them may be dead after all (ours)."""

BELIEVED_DEAD_SECONDS = 3600.0
"""After the longest wait failures are the hosts' for so long: with the crawl's own rests that may be its end (ours)."""

_FIRST_TEST_SECONDS = 5.0
_LONGEST_TEST_SECONDS = 60.0  # an outage of a night costs some hundred tries, and ends within a minute
_MAX_DOUBLINGS = 10  # a higher exponent only risks an overflow


def is_doubtful(reason: Reason, status: int | None, *, reached_before: bool, any_reached: bool) -> bool:
    """Whether a failure may be our own network's. ``reached_before``: the host has answered once.

    ``any_reached``: some host has, since the start. A name that was good and that resolvers now deny is doubtful too:
    some resolvers say so when they are cut off.
    """
    if status is not None:
        return status == NETWORK_AUTHENTICATION
    if reason is Reason.DNS_NOT_FOUND:
        return reached_before
    return reason in (_EITHER if any_reached else _OF_UNREACHED)


def next_try_seconds(failed_tests: int) -> float:
    """How long to wait before the next try to reach a known host, after so many that failed."""
    return float(min(_FIRST_TEST_SECONDS * 2 ** min(failed_tests, _MAX_DOUBLINGS), _LONGEST_TEST_SECONDS))

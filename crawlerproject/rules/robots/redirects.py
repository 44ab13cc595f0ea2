"""Decides how often a host may send us to other sites for its robots.txt: a redirect is no leave to ask anything."""

from __future__ import annotations

from collections.abc import Mapping

# RFC 9309 2.3.1.2: at least five redirects are followed. A host has no use for more targets than that.
MOST_TARGETS = 5
# Of one host, for the robots.txt files of one registered domain within ROBOTS_TTL_SECONDS (ours): sites that keep the
# files of many hosts in one place keep one for each, and no owner needs a stranger asked for more than these.
MOST_ASKED = 40


def sent_on(before: Mapping[str, float], target: str, now: float, ttl_seconds: float) -> dict[str, float] | None:
    """What to remember when a host sends us on to ``target`` (a URL of another registered domain); None: do not go.

    ``before`` are the targets that the host has sent us to and until when (epoch seconds) that counts. Each is asked
    once in ``ttl_seconds``, as a robots.txt is.
    """
    kept = {url: until for url, until in before.items() if until > now}
    if target in kept or len(kept) >= MOST_TARGETS:
        return None
    return {**kept, target: now + ttl_seconds}

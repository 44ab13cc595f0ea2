"""Asks for the crawler's own key directory, as a verifier would, and says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from scrapy.settings import BaseSettings

from crawlerproject.errors import OperatorError
from crawlerproject.fetch.own_pages import Served, served
from crawlerproject.rules.identity.key_ring import (
    CLOCK_SECONDS,
    DIRECTORY_PATH,
    DIRECTORY_TAG,
    DIRECTORY_TYPE,
    KeyRing,
    content_digest,
    listed_keys,
    published_keys,
)
from crawlerproject.rules.identity.message_signatures import Message, proofs

# Statuses that say nothing about what is there.
_PASSING = frozenset({408, 425, 429, *range(500, 600)})


def served_directory(settings: BaseSettings, ring: KeyRing) -> Served:
    """Ask for it once; verifiers do not follow redirects either. Raises OSError. Blocking."""
    return served(ring.agent + DIRECTORY_PATH, settings, accept=DIRECTORY_TYPE, redirects=False)


def keys_of(agent: str, settings: BaseSettings) -> dict[str, Ed25519PublicKey]:
    """The keys that another crawler publishes, at its https origin. Raises OperatorError. Blocking."""
    url = agent + DIRECTORY_PATH
    try:
        answer = served(url, settings, accept=DIRECTORY_TYPE, redirects=False)
        if answer.status != 200:
            raise ValueError(f"it is answered with status {answer.status}")
        return published_keys(answer.body)
    except (OSError, ValueError) as error:
        raise OperatorError(f"The keys at {url} cannot be read ({error}); the signature cannot be checked.") from error


def is_passing(answer: Served) -> bool:
    """Whether there may be a directory when it is asked for again."""
    return answer.status in _PASSING


def flaws(answer: Served, ring: KeyRing, now: float) -> Iterator[str]:
    """What stops verifiers from knowing our requests, in sentences that say what mends it; the worst first."""
    signing = ring.signing(now)
    if answer.status != 200:
        yield f"{answer.url} is answered with status {answer.status}; publish the key directory there."
        return
    try:
        listed = listed_keys(answer.body)
    except ValueError as error:
        yield f"{answer.url} is no key directory ({error}); publish what scrapy botpage writes."
        return
    if signing.keyid not in listed:
        yield f"{answer.url} lacks the key {signing.keyid}, which signs; publish what scrapy botpage writes."
    if (ahead := answer.ahead_seconds) is not None and abs(ahead) > CLOCK_SECONDS:
        yield (
            f"This machine's clock is {abs(ahead):,.0f} seconds {'behind' if ahead > 0 else 'ahead of'} that of "
            f"{ring.agent}, and verifiers refuse signatures of another time; set it, by NTP for example."
        )


def advice(answer: Served, ring: KeyRing, now: float) -> Iterator[str]:
    """What the draft asks for beside that, of a directory without flaws: sentences."""
    media_type = answer.fields.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != DIRECTORY_TYPE:
        yield f"{answer.url} has the media type {media_type or 'of nothing'}; verifiers want {DIRECTORY_TYPE}."
    listed = set(listed_keys(answer.body))
    published = {key.keyid: key for key in ring.published(now)}
    for keyid in sorted(published.keys() - listed):
        yield f"It lacks the key {keyid}, which will sign; publish what scrapy botpage writes."
    for keyid in sorted(listed - published.keys()):
        yield f"It still names the key {keyid}, which signs no more; publish what scrapy botpage writes."
    digest = {"content-digest": content_digest(answer.body)}
    message = Message("GET", "https", ring.agent.removeprefix("https://"), DIRECTORY_PATH, answer.fields | digest, True)
    try:
        good = [proof for proof in proofs(message, ring.public_keys()) if proof.tag == DIRECTORY_TAG]
    except ValueError:
        good = []
    proven = {proof.keyid for proof in good if not proof.flaw and not proof.at(now, CLOCK_SECONDS)}
    if not listed <= proven:
        yield "Its answer is not signed by its keys, which is recommended; have it sent with the headers in _headers."

"""Asks for the crawler's own key directory, as a verifier would, and says what is wrong with it."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from crawlerproject.config.values import list_of
from crawlerproject.fetch.tls import Certificates, allowed_hosts
from crawlerproject.rules.identity.key_ring import (
    CLOCK_SECONDS,
    DIRECTORY_PATH,
    DIRECTORY_TAG,
    DIRECTORY_TYPE,
    KeyRing,
    content_digest,
    listed_keys,
)
from crawlerproject.rules.identity.message_signatures import Message, proofs

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

# For connecting and for each part of the answer: a start waits for it (ours).
_TIMEOUT_SECONDS = 10.0
_MOST_BYTES = 65_536
# Statuses that say nothing about what is there.
_PASSING = frozenset({408, 425, 429, *range(500, 600)})


class Served(NamedTuple):
    """The answer of the directory's server; ``clock_seconds``: by which it is ahead of ours, None without a date."""

    url: str
    status: int
    body: bytes
    fields: dict[str, str]  # names in lower case
    clock_seconds: float | None

    @property
    def unavailable(self) -> bool:
        """Whether there may be a directory when it is asked for again."""
        return self.status in _PASSING


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *what: Any) -> None:
        """Verifiers do not follow it either: the answer stands as an error."""


def served_directory(settings: BaseSettings, ring: KeyRing) -> Served:
    """Ask for it once, by the environment's proxies and the crawl's certificates. Raises OSError. Blocking."""
    parts = urlsplit(ring.agent)
    unverified = allowed_hosts(list_of(settings, "TLS_ALLOW_HOSTS"))
    certificates = Certificates(settings.get("FETCH_CA_FILE") or "", unverified)
    context = certificates.context(parts.hostname or "", parts.port or 443)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _NoRedirects)
    url = ring.agent + DIRECTORY_PATH
    request = urllib.request.Request(url, headers={"Accept": DIRECTORY_TYPE})
    try:
        answer = opener.open(request, timeout=_TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        answer = error
    except HTTPException as error:
        raise OSError(f"no HTTP: {error!r}") from error
    with answer:
        try:
            body = answer.read(_MOST_BYTES)
        except HTTPException as error:
            raise OSError(f"no whole answer: {error!r}") from error
        fields = {name.lower(): ", ".join(answer.headers.get_all(name)) for name in answer.headers.keys()}  # noqa: SIM118
        return Served(url, answer.status, body, fields, _ahead_seconds(fields, time.time()))


def _ahead_seconds(fields: dict[str, str], now: float) -> float | None:
    """By how far the server's clock is ahead; a copy in a cache is as old as it says."""
    try:
        age = int(fields.get("age", "0"))
        return parsedate_to_datetime(fields["date"]).timestamp() + age - now
    except (KeyError, ValueError, OverflowError):
        return None


def flaws(served: Served, ring: KeyRing, now: float) -> Iterator[str]:
    """What stops verifiers from knowing our requests, in sentences that say what mends it; the worst first."""
    signing = ring.signing(now)
    if served.status != 200:
        yield f"{served.url} is answered with status {served.status}; publish the key directory there."
        return
    try:
        listed = listed_keys(served.body)
    except ValueError as error:
        yield f"{served.url} is no key directory ({error}); publish what scrapy botpage writes."
        return
    if signing.keyid not in listed:
        yield f"{served.url} lacks the key {signing.keyid}, which signs; publish what scrapy botpage writes."
    if (ahead := served.clock_seconds) is not None and abs(ahead) > CLOCK_SECONDS:
        yield (
            f"This machine's clock is {abs(ahead):,.0f} seconds {'behind' if ahead > 0 else 'ahead of'} that of "
            f"{ring.agent}, and verifiers refuse signatures of another time; set it, by NTP for example."
        )


def advice(served: Served, ring: KeyRing, now: float) -> Iterator[str]:
    """What the draft asks for beside that, of a directory without flaws: sentences."""
    media_type = served.fields.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != DIRECTORY_TYPE:
        yield f"{served.url} has the media type {media_type or 'of nothing'}; verifiers want {DIRECTORY_TYPE}."
    listed = set(listed_keys(served.body))
    published = {key.keyid: key for key in ring.published(now)}
    for keyid in sorted(published.keys() - listed):
        yield f"It lacks the key {keyid}, which will sign; publish what scrapy botpage writes."
    for keyid in sorted(listed - published.keys()):
        yield f"It still names the key {keyid}, which signs no more; publish what scrapy botpage writes."
    digest = {"content-digest": content_digest(served.body)}
    message = Message("GET", "https", ring.agent.removeprefix("https://"), DIRECTORY_PATH, served.fields | digest, True)
    try:
        good = [proof for proof in proofs(message, ring.public_keys()) if proof.tag == DIRECTORY_TAG]
    except ValueError:
        good = []
    proven = {proof.keyid for proof in good if not proof.flaw and not proof.at(now, CLOCK_SECONDS)}
    if not listed <= proven:
        yield "Its answer is not signed by its keys, which is recommended; have it sent with the headers in _headers."

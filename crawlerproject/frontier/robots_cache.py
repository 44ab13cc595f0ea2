"""The robots.txt rules of every origin: parsed for busy origins in memory, packed for all in the store."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection
from operator import attrgetter
from typing import NamedTuple, Protocol

from crawlerproject.reasons import Reason
from crawlerproject.rules.consent.terms import Terms, documents_of
from crawlerproject.rules.consent.verdict import Note, Source, Verdict, judge, reservation
from crawlerproject.rules.robots.matcher import PathAccess
from crawlerproject.rules.robots.policy import (
    KEPT_BYTES,
    STALE_SECONDS,
    RobotsRecord,
    RobotsRules,
    RobotsVerdict,
    may_allow_more,
    parse_robots,
    robots_verdict,
)
from crawlerproject.rules.url.urls import host_key, origin
from crawlerproject.runtime.lru import WeighedCache

# Parsed rules kept at hand: some 400 bytes beside the rules, so 20 MB at most. The second bound is in characters of the
# rules: of our corpus of 4,231 real files 800 in 6 MB, as a mean; one made large, of 500 KiB, takes some 20 MB.
_PARSED_KEPT = 50_000
_PARSED_CHARACTERS = 1_000_000
# Of more origins the rules are at hand in a quarter of the instructions that parsing them takes: 25 rules have 1.4 KB
# when they are pickled, so those of 20,000 origins, beside 300 bytes for each.
_PACKED_BYTES = 32_000_000
# While a stale copy serves, the real one is asked for this often (ours).
_STALE_RETRY_SECONDS = 3600.0
_NOTHING_ALLOWED = b"User-agent: *\nDisallow: /\n"


class RobotsStore(Protocol):
    """What keeps packed records of robots.txt files: a ``FrontierStore``."""

    def robots(self, origin: str) -> bytes | None: ...


class RobotsOutcome(NamedTuple):
    """What an answer means: whether pages may be asked for, until when, at which floor."""

    usable: bool
    good_until: float
    floor_seconds: float
    record: bytes | None  # to be stored
    allows_more: bool = False  # whether URLs may be allowed that the rules before forbade


class RobotsCache:
    """Judges URLs for one product token."""

    def __init__(
        self, store: RobotsStore, token: str, ttl_seconds: float, *, obeyed_for: str = "", asks: Collection[Source] = ()
    ) -> None:
        """``obeyed_for``: a purpose, for which words that reserve pages are obeyed; "": they are only recorded.

        ``asks``: which documents beside robots.txt are asked for (``consent.terms``).
        """
        self._store = store
        self._obeyed_for = obeyed_for
        self._asks = asks
        self._token = token
        self.ttl_seconds = ttl_seconds
        size = attrgetter("size")
        self._parsed: WeighedCache[str, RobotsRules] = WeighedCache(_PARSED_KEPT, _PARSED_CHARACTERS, size)
        self._packed: WeighedCache[str, bytes] = WeighedCache(_PARSED_KEPT, _PACKED_BYTES, len)  # the same and more
        self._unstored: dict[str, bytes] = {}  # until the next commit

    def rules(self, origin: str) -> RobotsRules:
        """The rules of an origin; those that allow everything when none are stored."""
        if (rules := self._parsed.peek(origin)) is not None:  # as nearly always, and several times a page
            self._parsed.touch(origin)
            return rules
        # Only origins with a record are asked about: doubt means no.
        return self._at_hand(origin) or self._keep(origin, parse_robots(_NOTHING_ALLOWED, self._token))

    def words(self, url: str) -> list[Note]:
        """What the site says of the use of a queued page's URL, before it is asked for; ask while its lease is out."""
        rules = self.rules("/".join(url.split("/", 3)[:3]))
        return _words_of(rules, url) if rules.content_signals or rules.licenses or rules.terms else []  # as nearly all

    def license_words(self, url: str, license: str) -> list[Note] | None:
        """What a licence that a page names says of it; None: that is not known."""
        return self.rules(origin(url)).license_terms_for(url, license)

    def refusal(self, url: str, rules: RobotsRules) -> Reason | None:
        """Why a URL of these rules' origin, or a path there, is not asked for; None when it may be."""
        if rules.verdict(url) is not PathAccess.ALLOW:
            return Reason.ROBOTS
        if not self._obeyed_for or not (rules.content_signals or rules.licenses or rules.terms):
            return None
        judged = judge(_words_of(rules, url), self._obeyed_for)
        if judged.verdict is Verdict.RESERVED:
            return reservation(judged)
        # Where nothing is known of a licence's terms doubt means no.
        return Reason.RESERVED_LICENSE if rules.licenses and rules.terms is None else None

    def asks_more(self, rules: RobotsRules) -> bool:
        """Whether ``refusal`` hangs on more than the paths that are allowed."""
        return rules.left_alone or bool(self._obeyed_for and (rules.content_signals or rules.licenses or rules.terms))

    def floor_seconds(self, origin: str) -> float:
        """The pause that an origin's last known rules ask for, stale ones too; 0 when none are known."""
        rules = self._at_hand(origin)
        return 0.0 if rules is None else rules.floor_seconds

    def _at_hand(self, origin: str) -> RobotsRules | None:
        """Those that were parsed before, or are parsed now; None when none are stored."""
        rules = self._parsed.peek(origin)
        if rules is None and (packed := self._packed.get(origin)) is not None:
            rules = self._parsed[origin] = pickle.loads(packed)  # which we have made
        if rules is None and (record := self._record(origin)) is not None:
            rules = self._keep(origin, record.rules(self._token))
        return rules

    def next_document(self, origin: str, now: float) -> tuple[int, str]:
        """What an origin is asked for now, as a number and a URL: 0 is robots.txt, then come those beside it."""
        if self._asks:
            record = self._record(origin)
            if record is not None and record.terms and now < _known_until(record):
                terms = Terms.unpack(record.terms)
                if (number := terms.next) is not None:
                    return number, terms.documents[number - 1].url
        return 0, origin + "/robots.txt"

    def answered(
        self, origin: str, status: int | None, body: bytes, reason: Reason, now: float, *, is_first: bool = False
    ) -> RobotsOutcome:
        """Take in the answer to a robots.txt request (RFC 9309 2.3.1); ``is_first``: nothing is stored of its host."""
        verdict = robots_verdict(status)
        before = None if is_first else self._record(origin)
        if verdict is RobotsVerdict.WAIT:
            if before is None or now - before.fetched_at > STALE_SECONDS:
                return RobotsOutcome(False, 0.0, 0.0, None)
            rules = self._keep(origin, before.rules(self._token))
            return RobotsOutcome(True, now + _STALE_RETRY_SECONDS, rules.floor_seconds, None)
        good_until = now + self.ttl_seconds
        kept = body[:KEPT_BYTES] if verdict is RobotsVerdict.PARSE else b""
        more = before is not None and may_allow_more(before.body, kept, self._token)
        record = RobotsRecord(status or 0, kept, now, good_until, str(reason))
        if self._asks:
            rules, tdmrep = parse_robots(kept, self._token), Source.TDMREP in self._asks
            if documents := documents_of(origin, rules.licenses, rules.allowed, tdmrep=tdmrep):
                record = record._replace(terms=Terms(documents).pack())
        return self._taken_in(origin, record, more)

    def document_answered(self, origin: str, number: int, status: int | None, body: bytes, now: float) -> RobotsOutcome:
        """Take in the answer to a document beside robots.txt.

        Where words are obeyed one that cannot be reached is as robots.txt would be; else its words are in doubt.
        """
        verdict, record = robots_verdict(status), self._record(origin)
        if record is None or not record.terms or (verdict is RobotsVerdict.WAIT and self._obeyed_for):
            return RobotsOutcome(False, 0.0, 0.0, None)
        terms = Terms.unpack(record.terms)
        if terms.next == number:  # else it came twice
            record = record._replace(terms=terms.answered(number, status or 0, body, origin.partition("://")[2]).pack())
        return self._taken_in(origin, record, more=False)

    def want_license(self, origin: str, url: str) -> RobotsOutcome | None:
        """Have a licence asked for that a page of the origin names; None: it is not to be."""
        record = self._record(origin)
        if record is None or Source.LICENSE not in self._asks:
            return None
        if host_key(url) == origin.partition("://")[2] and not self.rules(origin).allowed(url):
            return None
        terms = (Terms.unpack(record.terms) if record.terms else Terms([])).with_license(url)
        return self._taken_in(origin, record._replace(terms=terms.pack()), more=False) if terms is not None else None

    def _taken_in(self, origin: str, record: RobotsRecord, more: bool) -> RobotsOutcome:
        """A record that is to be stored; until all its documents are known it is good for nothing."""
        rules = self._keep(origin, record.rules(self._token))
        pending = rules.terms is not None and rules.terms.next is not None
        packed = self._unstored[origin] = record.pack()
        return RobotsOutcome(True, 0.0 if pending else record.expires_at, rules.floor_seconds, packed, more)

    def forget(self, mine: Callable[[str], bool]) -> None:
        """Drop the parsed rules of hosts of other workers: they may be outdated when the hosts return."""
        for cache in (self._parsed, self._packed):
            cache.forget(lambda origin: not mine(origin.rpartition("://")[2]))

    def stored(self, origin: str, record: bytes) -> None:
        """A record of an origin has reached the store; there may be a newer one by now."""
        if self._unstored.get(origin) == record:
            del self._unstored[origin]

    def serves(self, origin: str, now: float) -> bool:
        """Whether what is known of an origin's rules holds while robots.txt cannot be reached."""
        record = self._record(origin)
        return record is not None and now - record.fetched_at <= STALE_SECONDS

    def knows(self, origin: str, now: float) -> bool:
        """Whether robots.txt itself is known, though documents beside it may be asked for yet."""
        record = self._record(origin)
        return record is not None and now < _known_until(record)

    def _record(self, origin: str) -> RobotsRecord | None:
        packed = self._unstored.get(origin) or self._store.robots(origin)
        return RobotsRecord.unpack(packed) if packed else None

    def _keep(self, origin: str, rules: RobotsRules) -> RobotsRules:
        self._parsed[origin], self._packed[origin] = rules, pickle.dumps(rules)
        return rules


def _known_until(record: RobotsRecord) -> float:
    return max(record.expires_at, record.fetched_at + _STALE_RETRY_SECONDS)


def _words_of(rules: RobotsRules, url: str) -> list[Note]:
    licenses = [f"license: {license}" for license in rules.licenses]
    words = [(str(Source.ROBOTS_TXT), words) for words in (*rules.words_for(url), *licenses)]
    return words + rules.terms_for(url)

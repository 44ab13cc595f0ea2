"""Decides whether a site's words on the use of a page allow a purpose, reserve the page from it, or say nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from crawlerproject.reasons import Reason

Note = tuple[str, str]
"""Name and value of a line of the metadata record: where a word of use was found, and the word."""


class Verdict(StrEnum):
    """What a site's words come to for one purpose."""

    ALLOWED = "allowed"
    RESERVED = "reserved"
    UNKNOWN = "unknown"


class Judgement(NamedTuple):
    """A verdict, and the line that decided."""

    verdict: Verdict
    source: str = ""  # the line's name
    words: str = ""


class Source(StrEnum):
    """Where words are found: the names of their lines, that nearest to the page first."""

    PAGE = "ai-use-page"
    HEADER = "ai-use-header"
    TDMREP = "ai-use-tdmrep"
    LICENSE = "ai-use-license"
    ROBOTS_TXT = "ai-use-robots-txt"


class _Labels(NamedTuple):
    """What speaks of a purpose: sets of labels, the nearest first. The first set of which one is used decides."""

    labels: Sequence[frozenset[str]]
    is_mining: bool  # text and data mining, of which TDMRep speaks
    is_ai: bool  # of which noai and its likes speak


# Labels of Content-Usage (draft-ietf-aipref-vocab-06), Content-Signal (contentsignals.org) and RSL 1.0's usage, with
# those of earlier drafts: each vocabulary has its own, and none gives one of them two meanings.
_EVERYTHING = frozenset({"all", "bots"})
_AI = frozenset({"ai", "ai-all"})
_TRAINING = frozenset({"train-ai", "train-genai", "ai-train", "foundation-model-production"})
_INPUT = frozenset({"ai-input", "ai-use"})
_SEARCH = frozenset({"search"})

_PURPOSES: dict[str, _Labels] = {
    "archive": _Labels((_EVERYTHING,), is_mining=False, is_ai=False),
    "search": _Labels((_SEARCH, _EVERYTHING), is_mining=False, is_ai=False),
    "research": _Labels((_EVERYTHING,), is_mining=True, is_ai=False),
    "ai-train": _Labels((_TRAINING, _AI, _EVERYTHING), is_mining=True, is_ai=True),
    "ai-input": _Labels((_INPUT, _AI, _EVERYTHING), is_mining=True, is_ai=True),
}
PURPOSES = tuple(_PURPOSES)
"""What pages may be for; the first is the default."""
_OBEYING = frozenset({"ai-train", "ai-input"})


_PLACES = tuple(Source)
_REASONS = {
    Source.PAGE: Reason.RESERVED_PAGE,
    Source.HEADER: Reason.RESERVED_HEADER,
    Source.TDMREP: Reason.RESERVED_TDMREP,
    Source.LICENSE: Reason.RESERVED_LICENSE,
    Source.ROBOTS_TXT: Reason.RESERVED_ROBOTS,
}
NOTE = "consent"
"""Name of the metadata record's line that has the verdict."""
DOUBT = "unreadable"
"""Begins words that are there and cannot be read: of these the strictest meaning counts."""
AI_WORDS = frozenset({"noai", "noimageai", "noml"})
"""Robots words of no standard: the first two are DeviantArt's, the third is Mojeek's."""

# Structured Fields have y, n, ?1 and ?0; Content-Signal has yes and no.
_YES = frozenset({"y", "yes", "1", "?1", "true"})
_WORD = re.compile(r"(?<![\w-])([A-Za-z][\w-]{0,63}+)\s*+=\s*+\"?([^\s,;\"]*+)")
_PAYMENT = "payment:"


def judge(notes: Iterable[Note], purpose: str) -> Judgement:
    """What these lines come to for a purpose.

    The precedence: of TDMRep's three places the nearest to the page counts alone (TDMRep, "processing priority"). Of
    all that is left one reservation outweighs every permission (draft-ietf-aipref-vocab-06 on combining preferences),
    and the nearest to the page is named. Lines of other names are passed over.
    """
    labels = _PURPOSES[purpose]
    judged: list[tuple[int, Verdict, Note]] = []
    mining: list[tuple[int, Verdict, Note]] = []
    for name, value in notes:
        if name not in _PLACES:
            continue
        found = _said(name, value, labels)
        if found is not None:
            is_of_mining = name == Source.TDMREP or value.startswith("tdm-")
            (mining if is_of_mining else judged).append((_PLACES.index(Source(name)), found, (name, value)))
    if mining:
        nearest = min(place for place, _, _ in mining)
        judged += [each for each in mining if each[0] == nearest]
    reserved = [each for each in judged if each[1] is Verdict.RESERVED]
    if not judged:
        return Judgement(Verdict.UNKNOWN)
    _, verdict, (name, value) = min(reserved or judged, key=lambda each: each[0])
    return Judgement(verdict, name, value)


def strictest(*verdicts: str) -> Verdict:
    """Of several verdicts, as they are written, that which outweighs the others."""
    return next((verdict for verdict in (Verdict.RESERVED, Verdict.ALLOWED) if verdict in verdicts), Verdict.UNKNOWN)


def reservation(judgement: Judgement) -> Reason:
    """Why a page that is reserved is not had."""
    if judgement.source == Source.LICENSE and _PAYMENT in judgement.words:
        return Reason.PAYMENT_REQUIRED
    return _REASONS[Source(judgement.source)]


def _said(name: str, value: str, labels: _Labels) -> Verdict | None:
    """What one line says of the purpose; None: nothing."""
    if value.startswith(DOUBT):
        return Verdict.RESERVED if labels.is_mining or name == Source.LICENSE else None
    if value in AI_WORDS:
        return Verdict.RESERVED if labels.is_ai else None
    field, _, rest = value.partition(":")
    if field == "tdm-reservation":
        # Its values are 0 and 1; in doubt it is one.
        verdict = Verdict.ALLOWED if rest.strip().partition(";")[0].strip() == "0" else Verdict.RESERVED
        return verdict if labels.is_mining else None
    if name == Source.LICENSE:
        # Of licences as ``terms`` words them, " | " between: one that permits the purpose for nothing is enough.
        free = any(_permitted(each, labels) for each in value.split(" | "))
        return Verdict.ALLOWED if free else Verdict.RESERVED
    if field in ("tdm-policy", "license"):
        return None
    return _used(value, labels)


def _used(value: str, labels: _Labels) -> Verdict | None:
    """Of "train-ai=n, search=y": the nearest label that is used decides; a value that cannot be read is a no."""
    pairs = [(label.lower(), setting.lower()) for label, setting in _WORD.findall(value)]
    for tier in labels.labels:
        settings = [setting for label, setting in pairs if label in tier]
        if settings:
            return Verdict.ALLOWED if all(setting in _YES for setting in settings) else Verdict.RESERVED
    return None


def _permitted(licence: str, labels: _Labels) -> bool:
    terms = dict(part.split(": ", 1) for part in licence.split("; ") if ": " in part)
    if set(terms) - {"permits", "prohibits"}:  # payment, a licence server, users or countries
        return False
    permits, prohibits = (set(terms.get(name, "").split()) for name in ("permits", "prohibits"))
    for tier in labels.labels:
        if tier & prohibits:
            return False
        if tier & permits:
            return True
    return not permits


def asked_documents(purpose: str, consent: str) -> frozenset[Source]:
    """Which documents beside robots.txt a host is asked for, by the setting CONSENT.

    Those that concern the purpose: tdmrep.json, of which most hosts have none, is about mining alone. "ask" wants all.
    """
    if consent == "record":
        return frozenset()
    everything = consent == "ask" or _PURPOSES[purpose].is_mining
    return frozenset({Source.TDMREP, Source.LICENSE} if everything else {Source.LICENSE})


def obeys(purpose: str, consent: str) -> bool:
    """Whether words that reserve pages from ``purpose`` are obeyed, by the setting CONSENT."""
    return consent == "obey" or (consent == "auto" and purpose in _OBEYING)
